# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Video decoders: correct frames first, then speed.

The frames of each backend are compared with PyAV, which decodes the file from
start to end. A backend that returns wrong frames of a file is not measured on
it. The time covers opening the file and reading a clip as in training: 16
frames spread over the file (sparse), 32 of 64 consecutive frames (dense), or
up to 256 frames from the start (sequential).

Live sources decode all frames in order, with as many threads as the library
chooses: frames per second with PyAV, as in :mod:`mmvidattn.live`, and with
OpenCV, unless its frames are wrong.

The videos are generated: moving patterns of 10 and 120 seconds, in H.264 with
B-frames if PyAV can encode it, otherwise in MPEG-4. --videos adds files.
"""
import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

import av
import cv2
import numpy as np
import torch

from mmvidattn.sources.network import TIMEOUT, Camera, Stream
from mmvidattn.utils.video_readers import open_video, why_no_backend
from tools.benchmark.measure import measure, settings_of, title

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
# Clips of each pattern that are compared.
DRAWS = 4
# Frames are averaged in this number of blocks per side.
GRID = 8
# A frame is wrong if another frame is nearer by this number of levels of 255.
MARGIN = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--videos', nargs='+', type=Path, default=[], help='more videos')
    parser.add_argument(
        '--seconds', nargs='*', type=int, default=[10, 120],
        help='lengths of the generated videos (default: %(default)s)')
    parser.add_argument(
        '--size', nargs=2, type=int, default=[340, 256],
        metavar=('WIDTH', 'HEIGHT'),
        help='size of the generated videos (default: %(default)s)')
    parser.add_argument(
        '--threads', type=int, default=1,
        help='threads of a decoder, 0 for its default (default: 1, as in a '
        'data-loading worker)')


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
    lines = [title(result, f'threads per decoder: {result["threads"]}',
                   'ms per clip')]
    lines += [f'not compared, {why}' for why in result['missing'].values()]
    for name, video in result['videos'].items():
        lines += ['', f'{name}: {video["frames"]} frames',
                  f'{"":26}' + ''.join(f'{p:>12}' for p in PATTERNS)
                  + '  frames']
        for backend, one in video['backends'].items():
            line = f'{backend:26}'
            for pattern in PATTERNS:
                ms = one.get('ms', {}).get(pattern)
                line += f'{"-":>12}' if ms is None else f'{ms:12.1f}'
            lines.append(f'{line}  {one["verdict"]}')
        lines += [f'live source with {name}: {fps:.0f} frames/s'
                  for name, fps in video['live'].items()]
    return '\n'.join(lines)


def make_video(path: Path, seconds: int, width: int, height: int) -> str:
    """Write a video whose frames all differ, and return its kind."""
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
    return ('H.264, B-frames, a key frame every 250' if has_x264 else
            'MPEG-4, no B-frames')


def patterns(count: int, width: int, height: int) -> Iterator[np.ndarray]:
    """Yield images [H, W, 3] with moving waves and a binary counter."""
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    for number in range(count):
        wave = np.sin(rows / 17 + number / 11) + np.cos(
            columns / 23 - number / 7)
        image = np.stack([128 + 40 * wave, 128 + 40 * np.roll(wave, 9, 1),
                          128 - 40 * wave], -1)
        for bit in range(16):
            # The top row of blocks shows the number of the frame.
            left = bit * width // 16
            image[:height // GRID, left:left + width // 16] = \
                220 if number >> bit & 1 else 30
        yield image.astype(np.uint8)


def compare(path: Path, backends: dict[str, dict], repeats: int) -> dict:
    """Check the frames of each backend, and measure the correct backends."""
    truth = decode_all(path)
    rng = np.random.default_rng(0)
    draws = {pattern: [draw(pattern, len(truth), rng) for _ in range(DRAWS)]
             for pattern in PATTERNS}
    by_backend, right = {}, {}
    for name, options in backends.items():
        try:
            by_backend[name] = check(path, options, truth, draws)
        except Exception as error:
            message = ' '.join(str(error).split('Stack trace')[0].split())
            by_backend[name] = dict(verdict=f'cannot read it: {message[:100]}')
            continue
        if not by_backend[name]['wrong']:
            right[name] = options
    for pattern in PATTERNS:
        times = clip_times(path, right, draws[pattern], repeats)
        for name, ms in times.items():
            by_backend[name].setdefault('ms', {})[pattern] = ms
    return dict(frames=len(truth), backends=by_backend)


def decode_all(path: Path) -> np.ndarray:
    """Decode a file from start to end, and return the blocks of all frames."""
    with av.open(str(path)) as container:
        return np.stack([
            blocks(np.rot90(frame.to_ndarray(format='rgb24'),
                            frame.rotation // 90))
            for frame in container.decode(video=0)])


def blocks(image: np.ndarray) -> np.ndarray:
    """Return the mean color of each block of an image."""
    return cv2.resize(np.ascontiguousarray(image), (2 * GRID, GRID),
                      interpolation=cv2.INTER_AREA).astype(np.float32)


def draw(pattern: str, length: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the frame numbers of a clip."""
    if pattern == 'sparse':
        begins = np.arange(16) * length / 16
        return (begins + rng.uniform(0, length / 16, 16)).astype(int)
    if pattern == 'dense':
        start = rng.integers(0, max(1, length - 63))
        return np.minimum(start + 2 * np.arange(32), length - 1)
    return np.arange(min(length, SEQUENTIAL))


def check(path: Path, options: dict, truth: np.ndarray,
          draws: dict[str, list]) -> dict:
    """Count the wrong frames of a backend, and compare colors."""
    wrong = total = 0
    colors, example = 0., ''
    reader = open_video(path, options)
    # One reader reads all clips, so that it seeks back and forth.
    clips = [clip for drawn in draws.values() for clip in drawn]
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
    verdict = f'{wrong} of {total} wrong{example}' if wrong else 'correct'
    if len(reader) != len(truth):
        wrong = wrong or 1
        verdict = f'counts {len(reader)} frames; {verdict}'
    if colors > MARGIN:
        verdict += f', colors off by {colors:.1f} of 255'
    return dict(wrong=wrong, compared=total, colors=colors, verdict=verdict)


def clip_times(path: Path, backends: dict[str, dict], clips: Sequence,
               repeats: int) -> dict[str, float]:
    """Return the median milliseconds per clip of each backend."""

    def reader(options: dict) -> Callable:
        turn = cycle(clips)
        return lambda: open_video(path, options).get_batch(next(turn))

    seconds = measure({name: reader(options)
                       for name, options in backends.items()}, repeats,
                      torch.device('cpu'))
    return {name: 1000 * s for name, s in seconds.items()}


def live_speed(path: Path, repeats: int) -> dict[str, float]:
    """Return the median frames per second of reading an entire file."""
    streams = {'PyAV': lambda: Stream(str(path), TIMEOUT),
               'OpenCV': lambda: Camera(str(path))}
    opened = [stream() for stream in streams.values()]
    if not all(stream.grab() for stream in opened) or np.abs(np.subtract(*(
            blocks(stream.retrieve()) for stream in opened))).mean() >= MARGIN:
        del streams['OpenCV']
    for stream in opened:
        stream.release()
    counts: dict[str, int] = {}

    def reader(name: str) -> Callable:
        def read() -> None:
            stream, counts[name] = streams[name](), 0
            while stream.grab():
                stream.retrieve()
                counts[name] += 1
            stream.release()

        return read

    seconds = measure({name: reader(name) for name in streams}, repeats,
                      torch.device('cpu'))
    return {name: counts[name] / s for name, s in seconds.items()}
