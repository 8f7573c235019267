# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare what decodes videos: right frames first, speed second.

The frames of each backend are compared with PyAV, which decodes the file once
from its start to its end. A backend that
takes other frames of a file is not timed on it. Speed is of a clip as training
reads it: open the file, then take 16 frames spread over it (sparse), 32 frames
of which every other one counts (dense), or up to 256 from its start
(sequential).

Live sources decode all frames in order, with as many threads as the library
chooses: frames per second with PyAV, as :mod:`mmvidattn.live` does, and with
OpenCV, unless its frames are wrong.

The videos are made: moving patterns, of 10 and of 120 seconds, in H.264 with
B-frames where PyAV can encode, else in MPEG-4. --videos adds files.
"""
import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import av
import cv2
import numpy as np

from mmvidattn.sources.network import TIMEOUT, Camera, Stream
from mmvidattn.utils.video_readers import open_video, why_no_backend
from tools.benchmark.measure import settings_of, title

BACKENDS = {
    'decord': dict(type='decord'),
    'torchcodec': dict(type='torchcodec'),
    'torchcodec, approximate': dict(type='torchcodec',
                                    seek_mode='approximate'),
    'pyav': dict(type='pyav'),
    'opencv': dict(type='opencv'),
    'opencv, approximate': dict(type='opencv', seek_mode='approximate')}
PATTERNS = 'sparse', 'dense', 'sequential'
SEQUENTIAL = 256
# Draws of each pattern whose frames are compared.
DRAWS = 4
# Blocks into which frames are averaged, on each side.
GRID = 8
# Levels of 255 by which another frame must be nearer to be taken instead.
MARGIN = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--videos', nargs='+', type=Path, default=[], help='more videos')
    parser.add_argument(
        '--seconds', nargs='*', type=int, default=[10, 120],
        help='lengths of the videos that are made (default: %(default)s)')
    parser.add_argument(
        '--size', nargs=2, type=int, default=[340, 256],
        metavar=('WIDTH', 'HEIGHT'), help='of those (default: %(default)s)')
    parser.add_argument(
        '--threads', type=int, default=1,
        help='threads of a decoder, 0 for its own choice (default: 1, as in '
        'a worker that loads data)')


def run(args: argparse.Namespace) -> dict:
    missing = {name: why for name in ('decord', 'torchcodec')
               if (why := why_no_backend(name))}
    backends = {name: dict(options, num_threads=args.threads)
                for name, options in BACKENDS.items()
                if options['type'] not in missing}
    result = settings_of(args, threads=args.threads, missing=missing,
                         videos={})
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for seconds in args.seconds:
            path = Path(folder, f'{seconds}.mp4')
            kind = make_video(path, seconds, *args.size)
            paths[f'{seconds} s, {kind}'] = path
        paths.update((path.name, path) for path in args.videos)
        for name, path in paths.items():
            print(f'{name} ...', flush=True)
            result['videos'][name] = dict(
                compare(path, backends, args.repeats),
                live=live_speed(path, args.repeats))
    return result


def report(result: dict) -> str:
    lines = [title(result, f'threads of a decoder: {result["threads"]}',
                   'ms a clip')]
    lines += [f'not compared, {why}' for why in result['missing'].values()]
    for name, found in result['videos'].items():
        lines += ['', f'{name}: {found["frames"]} frames, the reference is '
                  f'{found["reference"]}',
                  f'{"":26}' + ''.join(f'{p:>12}' for p in PATTERNS)
                  + '  frames']
        for backend, one in found['backends'].items():
            line = f'{backend:26}'
            for pattern in PATTERNS:
                ms = one.get('ms', {}).get(pattern)
                line += f'{"-":>12}' if ms is None else f'{ms:12.1f}'
            lines.append(f'{line}  {one["said"]}')
        lines += [f'live source with {name}: {fps:.0f} frames/s'
                  for name, fps in found['live'].items()]
    return '\n'.join(lines)


def make_video(path: Path, seconds: int, width: int, height: int) -> str:
    """Write a video in which no two frames are alike; returns its kind."""
    has_x264 = 'libx264' in av.codecs_available
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(
            'libx264' if has_x264 else 'mpeg4', rate=25)
        stream.width, stream.height = width, height
        stream.pix_fmt = 'yuv420p'
        if has_x264:
            stream.options = dict(preset='veryfast', bf='3', g='250')
        for image in patterns(25 * seconds, width, height):
            container.mux(stream.encode(
                av.VideoFrame.from_ndarray(image, format='rgb24')))
        container.mux(stream.encode())
    return ('H.264, B-frames, a key frame in 250' if has_x264 else
            'MPEG-4, no B-frames')


def patterns(count: int, width: int, height: int) -> Iterator[np.ndarray]:
    """Images [H, W, 3] of waves that move, and of a counter in blocks."""
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    for number in range(count):
        wave = np.sin(rows / 17 + number / 11) + np.cos(
            columns / 23 - number / 7)
        image = np.stack([128 + 40 * wave, 128 + 40 * np.roll(wave, 9, 1),
                          128 - 40 * wave], -1)
        for bit in range(16):
            # Each frame has its number, in the upper row of blocks.
            left = bit * width // 16
            image[:height // GRID, left:left + width // 16] = \
                220 if number >> bit & 1 else 30
        yield image.astype(np.uint8)


def compare(path: Path, backends: dict[str, dict], repeats: int) -> dict:
    """Frames of each backend, and milliseconds of those that are right."""
    reference, truth = decode_all(path)
    rng = np.random.default_rng(0)
    draws = {pattern: [draw(pattern, len(truth), rng) for _ in range(DRAWS)]
             for pattern in PATTERNS}
    found, right = {}, {}
    for name, options in backends.items():
        try:
            found[name] = check(path, options, truth, draws)
        except Exception as error:
            said = ' '.join(str(error).split('Stack trace')[0].split())
            found[name] = dict(said=f'cannot read it: {said[:100]}')
            continue
        if not found[name]['wrong']:
            right[name] = options
    for pattern in PATTERNS:
        times = clip_times(path, right, draws[pattern], repeats)
        for name, ms in times.items():
            found[name].setdefault('ms', {})[pattern] = ms
    return dict(frames=len(truth), reference=reference, backends=found)


def decode_all(path: Path) -> tuple[str, np.ndarray]:
    """What decoded a file from start to end, and all frames' blocks."""
    with av.open(str(path)) as container:
        return 'PyAV', np.stack([
            blocks(np.rot90(frame.to_ndarray(format='rgb24'),
                            frame.rotation // 90))
            for frame in container.decode(video=0)])


def blocks(image: np.ndarray) -> np.ndarray:
    """Mean color of each of the blocks of an image."""
    return cv2.resize(np.ascontiguousarray(image), (2 * GRID, GRID),
                      interpolation=cv2.INTER_AREA).astype(np.float32)


def draw(pattern: str, length: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the frames of a clip."""
    if pattern == 'sparse':
        begins = np.arange(16) * length / 16
        return (begins + rng.uniform(0, length / 16, 16)).astype(int)
    if pattern == 'dense':
        start = rng.integers(0, max(1, length - 63))
        return np.minimum(start + 2 * np.arange(32), length - 1)
    return np.arange(min(length, SEQUENTIAL))


def check(path: Path, options: dict, truth: np.ndarray,
          draws: dict[str, list]) -> dict:
    """How many frames are others than they should be, and by how much."""
    wrong = total = 0
    colors, example = 0., ''
    reader = open_video(path, options)
    # As from one reader as from several: seeks go back and forth.
    clips = [clip for some in draws.values() for clip in some[:DRAWS]]
    for clip in [*clips, np.array([len(truth) - 1, 0])]:
        images = reader.get_batch(clip.clip(max=len(reader) - 1))
        for number, image in zip(clip, images):
            distance = np.abs(truth - blocks(image)).mean((1, 2, 3))
            total += 1
            if distance[number] > distance.min() + MARGIN:
                wrong += 1
                example = example or (
                    f', such as {distance.argmin()} for {number}')
            else:
                colors = max(colors, float(distance[number]))
    said = 'right' if not wrong else f'{wrong} of {total} wrong{example}'
    if len(reader) != len(truth):
        wrong = wrong or 1
        said = f'counts {len(reader)} frames; {said}'
    if colors > MARGIN:
        said += f', colors off by {colors:.1f} of 255'
    return dict(wrong=wrong, compared=total, colors=colors, said=said)


def clip_times(path: Path, backends: dict[str, Any], clips: Sequence,
               repeats: int) -> dict[str, float]:
    """Median milliseconds of a clip, in turns."""
    times: dict[str, list[float]] = {name: [] for name in backends}
    for repeat in range(repeats + 1):
        for name, options in backends.items():
            seconds = timed(lambda o=options: open_video(path, o).get_batch(
                clips[repeat % len(clips)]))
            # The first is to warm up.
            if repeat:
                times[name].append(seconds)
    return {name: 1000 * median(some) for name, some in times.items()}


def live_speed(path: Path, repeats: int) -> dict[str, float]:
    """Median frames per second of whole files, in turns."""
    streams = {'PyAV': lambda: Stream(str(path), TIMEOUT),
               'OpenCV': lambda: Camera(str(path))}
    first, other = streams['PyAV'](), streams['OpenCV']()
    if not (first.grab() and other.grab() and np.abs(blocks(
            first.retrieve()) - blocks(other.retrieve())).mean() < MARGIN):
        del streams['OpenCV']
    for stream in first, other:
        stream.release()
    speeds: dict[str, list[float]] = {name: [] for name in streams}
    for repeat in range(repeats + 1):
        for name, opened in streams.items():
            start, count, stream = time.perf_counter(), 0, opened()
            while stream.grab():
                stream.retrieve()
                count += 1
            stream.release()
            # The first is to warm up.
            if repeat:
                speeds[name].append(count / (time.perf_counter() - start))
    return {name: median(some) for name, some in speeds.items()}


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
