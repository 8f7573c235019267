# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dense evaluation, compared with a loop over batches of windows.

Both score the last step of consecutive windows of one video, with the same
random weights:

* dense: ``dense_features``, which shares computation among windows;
* windows: the model itself on batches of windows.
"""
import argparse

import torch
from torch import Tensor, nn

from mmvidattn.online import dense_features
from tools.benchmark.measure import (
    add_online_model,
    agreement_line,
    measure,
    online_model,
    probability_difference,
    relative,
    require_agreement,
    settings_of,
    title,
)

TOLERANCE = 1e-5


def tables(model: nn.Module, steps: int,
           rate: int) -> tuple[int, Tensor, Tensor]:
    """Return the frames of the two memories of each window of a video.

    The video is long enough to fill the long memory of the first window.

    Returns:
        Number of frames of the video, frame numbers of the long memories, and
        frame numbers of the work memories; the memories have a row per window.
    """
    N, L = model.long_memory_length, model.work_memory_length
    starts = torch.arange(steps)[:, None] + rate * N
    long = starts + rate * torch.arange(-N, 0)
    work = starts + torch.arange(L)
    return int(work.max()) + 1, long, work


def run(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    model, rate = online_model(args)
    backbone, head = model.backbone, model.cls_head
    length, long, work = tables(backbone, args.steps, rate)
    long, work = long.to(device), work.to(device)
    video = {
        name: torch.randn(length, channels, device=device)
        for name, channels in backbone.in_channels.items()
    }
    last = backbone.work_memory_length - 1

    def dense() -> Tensor:
        with torch.no_grad():
            return head(dense_features(
                backbone, video, long, work,
                batch_size=args.batch_size))['action']

    def windows() -> Tensor:
        scores = []
        with torch.no_grad():
            for batch in zip(long.split(args.batch_size),
                             work.split(args.batch_size)):
                indices = torch.cat(batch, dim=1)
                scores.append(model({
                    name: x[indices] for name, x in video.items()
                })['action'][:, last:])
        return torch.cat(scores)

    ours, plain = dense(), windows()
    agreement = dict(
        relative=relative(ours, plain),
        probability=probability_difference(ours, plain))
    require_agreement(agreement, TOLERANCE)
    seconds = measure(
        dict(dense=dense, windows=windows), args.repeats, device)
    return settings_of(
        args, config=str(args.config), steps=args.steps,
        batch_size=args.batch_size, agreement=agreement, seconds=seconds,
        ratio=seconds['windows'] / seconds['dense'])


def report(result: dict) -> str:
    seconds = result['seconds']
    return '\n'.join([
        title(result, 'float32', result['config'],
              f'{result["steps"]} steps, {result["batch_size"]} at a time'),
        agreement_line(result['agreement']),
        *(f'{name:10}{s:10.2f} s{1e3 * s / result["steps"]:10.2f} ms/step'
          f'{s / seconds["dense"]:10.2f} x' for name, s in seconds.items())
    ])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--steps', type=int, default=1000)
    parser.add_argument('--batch-size', type=int, default=16)
    add_online_model(parser)
    parser.set_defaults(repeats=3)
