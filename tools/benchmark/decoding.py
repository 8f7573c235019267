# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Seconds to open a video and read a clip, beside decord and plain PyAV.

    python tools/benchmark/decoding.py
    python tools/benchmark/decoding.py --videos A.mp4 B.mp4

A clip has 16 frames spread over the file (sparse), 32 of 64 consecutive frames
(dense), or up to 256 frames from the start (sequential). "PyAV" decodes the
file from its start to the clip's last frame. All frames must be alike: the
mean colors of 8 x 16 blocks of a frame differ by at most 5 %. The generated
videos have random colors, in H.264 with B-frames if PyAV can encode it,
otherwise in MPEG-4.
"""
import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import mmvidattn  # noqa: F401, I001  isort: skip

import av
import cv2
import numpy as np
import torch
from mmaction.registry import TRANSFORMS
from mmengine.registry import init_default_scope

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.benchmark import common

PATTERNS = 'sparse', 'dense', 'sequential'
ROWS, COLUMNS = 8, 16
TOLERANCE = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--videos', nargs='+', type=Path, help='measure these videos')
    parser.add_argument(
        '--seconds', nargs='+', type=int, default=[10, 120],
        help='lengths of generated videos (default: %(default)s)')
    parser.add_argument(
        '--size', nargs=2, type=int, default=[340, 256],
        metavar=('WIDTH', 'HEIGHT'), help='size of generated videos')
    parser.add_argument(
        '--patterns', nargs='+', choices=PATTERNS, default=list(PATTERNS))


def benchmarks(args: argparse.Namespace
               ) -> Iterator[tuple[str, dict, dict[str, float]]]:
    tolerances = defaultdict(lambda: TOLERANCE)
    with tempfile.TemporaryDirectory() as folder:
        videos = args.videos or [
            make_video(Path(folder, f'{seconds}_s.mp4'), seconds, *args.size)
            for seconds in args.seconds]
        for path in videos:
            for pattern in args.patterns:
                clip = dict(path=str(path.resolve()), pattern=pattern)
                variants = {'ours': dict(clip, library='ours')}
                if args.against:
                    variants['before'] = variants['ours']
                if find_spec('decord'):
                    variants['decord'] = dict(clip, library='decord')
                variants['PyAV'] = dict(clip, library='PyAV')
                yield f'{path.name}, {pattern}', variants, tolerances


def make_video(path: Path, seconds: int, width: int, height: int) -> Path:
    """Write a video whose frames all differ."""
    has_x264 = 'libx264' in av.codecs_available
    rng = np.random.default_rng(0)
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(
            'libx264' if has_x264 else 'mpeg4', rate=25)
        stream.width, stream.height = width, height
        stream.pix_fmt = 'yuv420p'
        if has_x264:
            stream.options = dict(preset='veryfast', bf='3', g='250')
        for _ in range(25 * seconds):
            blocks = rng.integers(30, 220, (ROWS, COLUMNS, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(
                cv2.resize(blocks, (width, height)), format='rgb24')))
        container.mux(stream.encode())
    return path


def numbers_of(pattern: str, length: int) -> np.ndarray:
    """Return the frame numbers of a clip."""
    if pattern == 'sparse':
        return (np.arange(16) + .5) * length // 16
    if pattern == 'dense':
        return np.minimum(length // 3 + 2 * np.arange(32), length - 1)
    return np.arange(min(length, 256))


def prepare(path: str, pattern: str, library: str, device: str,
            weights: str) -> common.Prepared:
    """Return a function that reads a clip, and the clip's colors."""
    init_default_scope('mmaction')
    steps = dict(
        ours=(dict(type='VideoReaderInit'),
              dict(type='VideoReaderDecode')),
        decord=(dict(type='DecordInit'), dict(type='DecordDecode')),
        PyAV=())[library]
    steps = [TRANSFORMS.build(step) for step in steps]
    with av.open(path) as container:
        length = sum(1 for _ in container.decode(video=0))
    numbers = numbers_of(pattern, length).astype(int)

    def read() -> list[np.ndarray]:
        if library == 'PyAV':
            return read_from_start(path, numbers)
        results = steps[0](dict(filename=path))
        results['frame_inds'] = numbers
        return steps[1](results)['imgs']

    return read, {
        f'frame {number}': torch.from_numpy(cv2.resize(
            np.ascontiguousarray(image), (COLUMNS, ROWS),
            interpolation=cv2.INTER_AREA).astype(np.float32))
        for number, image in zip(numbers, read())}


def read_from_start(path: str, numbers: np.ndarray) -> list[np.ndarray]:
    found = {}
    with av.open(path) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in numbers:
                found[number] = frame.to_ndarray(format='rgb24')
            if number == numbers.max():
                break
    return [found[number] for number in numbers]


if __name__ == '__main__':
    common.run(__file__, __doc__, prepare, add_arguments, benchmarks)
