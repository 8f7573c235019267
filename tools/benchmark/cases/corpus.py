# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Throughput of ``mmvidattn extract-features --engine local``.

"decoding" reads the frames of all steps with a pool of processes, and does
nothing with them. "extraction" is the command with the same number of
processes and a network that averages colors, so that decoding takes most of
the time. Both include the start of the processes, and run in turns.

Nothing is measured unless the command writes the average colors of the frames
that "decoding" reads.
"""
import argparse
import multiprocessing
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mmvidattn.cli import extract_features
from mmvidattn.live.steps import frame_indices, num_steps
from mmvidattn.utils.frame_times import ConstantRate
from mmvidattn.utils.video_readers import open_video
from tools.benchmark.cases.decode import make_video
from tools.benchmark.measure import (
    measure,
    require_agreement,
    settings_of,
    title,
)
from tools.harness import count as positive

RATE = 4.
SIDE = 64


class MeanColor(nn.Module):
    """Average of the pixels, [B, 3, H, W] to [B, 3]."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--videos', type=positive, default=40,
                        help='number of videos (default: 40)')
    parser.add_argument('--seconds', type=positive, default=20,
                        help='length of a video (default: 20)')
    parser.add_argument('--size', nargs=2, type=positive, default=[640, 480],
                        metavar=('WIDTH', 'HEIGHT'),
                        help='size of the videos (default: %(default)s)')
    parser.add_argument('--processes', type=positive, default=2,
                        help='number of processes (default: 2)')


def frames_of(video: str) -> Iterator[np.ndarray]:
    """Read the frame of each step, [H, W, 3]."""
    reader = ConstantRate(open_video(video))
    for step in range(num_steps(len(reader), reader.fps, RATE)):
        frame, = reader.get_batch(frame_indices(step, reader.fps, RATE, 1, 1))
        yield frame


def decode(video: str) -> int:
    """Read all steps of a video, and return their number."""
    return sum(1 for _ in frames_of(video))


def mean_colors(video: str) -> np.ndarray:
    """Return the mean colors of the center of each frame, [T, 3]."""
    colors = []
    for frame in frames_of(video):
        top, left = ((side - SIDE) // 2 for side in frame.shape[:2])
        colors.append(frame[top:top + SIDE, left:left + SIDE].mean((0, 1)))
    return np.stack(colors) / 255


def run(args: argparse.Namespace) -> dict:
    result = settings_of(args, videos=args.videos, processes=args.processes)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / 'videos').mkdir()
        first = folder / 'videos/0.mp4'
        result['kind'] = make_video(first, args.seconds, *args.size)
        for i in range(1, args.videos):
            (folder / f'videos/{i}.mp4').symlink_to(first)
        videos = [*map(str, (folder / 'videos').iterdir())]
        outs = (folder / f'out{i}' for i in count())

        def decoding() -> None:
            with multiprocessing.get_context('fork').Pool(
                    args.processes) as pool:
                pool.map(decode, videos, chunksize=1)

        def extraction() -> Path:
            out = next(outs)
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                extract_features.main([
                    str(folder / 'videos'), str(out), f'{__name__}:MeanColor',
                    '--input', 'takes=frames', 'mean=0', 'std=1',
                    f'crop={SIDE}', '--rate', str(RATE), '--engine', 'local',
                    '--processes', str(args.processes), '--device', 'cpu'])
            return out

        out = extraction()
        expected = mean_colors(str(first))
        result['steps'] = len(expected)
        require_agreement({
            video: float(np.abs(np.load(out / f'{video}.npy')
                                - expected).max() / expected.max())
            for video in map(str, range(args.videos))})
        result['seconds'] = measure(
            dict(decoding=decoding, extraction=extraction), args.repeats,
            torch.device('cpu'))
    return result


def report(result: dict) -> str:
    seconds, videos = result['seconds'], result['videos']
    lines = [title(result, f'{videos} videos, {result["kind"]}',
                   f'{result["processes"]} processes')]
    lines += [f'{name}: {videos / s:.2f} videos/s'
              for name, s in seconds.items()]
    share = seconds['decoding'] / seconds['extraction']
    lines.append(f'extraction has {share:.1%} of the throughput of decoding')
    return '\n'.join(lines)
