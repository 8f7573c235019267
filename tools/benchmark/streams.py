# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps of streams, beside the released step.

    python tools/benchmark/streams.py
    python tools/benchmark/streams.py --tables step --against OTHER_CHECKOUT
    python tools/benchmark/streams.py --device cuda --compile

* step: a step of TeSTra's stream beside a transcription of the released step
  (smoothing kernel). Scores must agree to 1e-5 with the transcription of the
  paper's Eq. 6, and the released step differs from it in three ways, see
  ``references/testra_stream.py``.
* causal: a step of the causal linear video transformer at frame 16 and after
  ``--history`` frames, beside a pass of 16 frames. A stream must have the
  scores of the pass to 1e-5.
* streams: steps of 1 to 64 streams in one push, and in bfloat16.

Times are for ``--steps`` steps.
"""
import argparse
import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mmvidattn  # noqa: I001  isort: skip

import torch
from torch import Tensor, nn

from mmvidattn.online import StreamSession

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.benchmark import common
from tools.benchmark.references.testra_stream import TranscribedStream

TABLES = 'step', 'causal', 'streams'
CONFIGS = dict(testra='testra_thumos14',
               causal='linear_ff_causal_thumos14_rgb')
TOLERANCE = 1e-5
LOW_PRECISION = 5e-2
RATE = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--tables', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument(
        '--steps', type=int, default=16, help='steps in a measurement '
        '(default: %(default)s)')
    parser.add_argument(
        '--streams', nargs='+', type=int, default=[1, 8, 64],
        help='streams in one push')
    parser.add_argument('--history', type=int, default=1000)
    parser.add_argument('--layers', type=int, default=12,
                        help='layers of the causal network')
    parser.add_argument('--size', type=int, default=224,
                        help='height and width of its frames')
    parser.add_argument('--compile', action='store_true',
                        help='measure compiled steps, too')


def benchmarks(args: argparse.Namespace
               ) -> Iterator[tuple[str, dict, dict[str, float]]]:
    steps = dict(steps=args.steps)
    tolerances = dict(scores=TOLERANCE, rounded=LOW_PRECISION)
    if 'step' in args.tables:
        variants = dict(released=dict(kind='released', **steps))
        for kernel in 'smoothing', 'window':
            variants[kernel] = dict(kind='testra', kernel=kernel, **steps)
        if args.against:
            variants['before'] = variants['smoothing']
        if args.compile:
            variants['smoothing, compiled'] = dict(
                variants['smoothing'], compiled=True)
        if torch.device(args.device).type == 'cuda':
            variants['smoothing, CUDA graph'] = dict(
                variants['smoothing'], graph=True)
        variants['smoothing, bfloat16'] = dict(
            variants['smoothing'], dtype='bfloat16')
        yield f'{args.steps} steps of TeSTra', variants, tolerances
    if 'causal' in args.tables:
        causal = dict(kind='causal', layers=args.layers, size=args.size)
        variants = {
            'pass of 16 frames': dict(causal, whole=True),
            'step at frame 16': dict(causal, history=16),
            f'step at frame {args.history}': dict(
                causal, history=args.history)}
        if args.against:
            variants['before'] = variants['step at frame 16']
        yield 'causal linear video transformer', variants, tolerances
    if 'streams' in args.tables:
        for dtype in common.DTYPES:
            yield (f'{args.steps} steps of several streams, {dtype}', {
                f'{n} streams': dict(
                    kind='testra', kernel='smoothing', streams=n,
                    dtype=dtype, **steps)
                for n in args.streams}, tolerances)


def prepare(kind: str, device: str, weights: str, steps: int = 1,
            **options: Any) -> common.Prepared:
    """Build a stream, compute the scores that are compared, and return steps.
    """
    torch.manual_seed(0)
    if kind == 'causal':
        return prepare_causal(device, weights, **options)
    config = CONFIGS['testra' if kind == 'released' else kind]
    model = mmvidattn.get_model(config, device=device)
    share_weights(model, weights)
    if kind == 'released':
        return prepare_released(model, steps)
    return prepare_session(model, steps, **options)


def share_weights(model: nn.Module, weights: str) -> None:
    """Load the weights of an earlier variant, or write random ones."""
    if Path(weights).exists():
        model.load_state_dict(torch.load(weights, weights_only=True))
        return
    for p in model.parameters():
        # Initial biases are zero, which would hide their effect.
        if p.dim() == 1:
            p.data += 0.02 * torch.randn_like(p)
    torch.save(model.state_dict(), weights)


def frames_of(model: nn.Module, length: int = 64) -> list[dict[str, Tensor]]:
    """Draw random frames of features."""
    generator = torch.Generator().manual_seed(1)
    device = next(model.parameters()).device
    video = {name: torch.randn(length, channels, generator=generator)
             for name, channels in model.backbone.in_channels.items()}
    return [{name: x[t].to(device) for name, x in video.items()}
            for t in range(length)]


def prepare_released(model: nn.Module, steps: int) -> common.Prepared:
    frames = frames_of(model)
    for module in model.modules():
        # The released code has torch's linear layers.
        if isinstance(module, nn.Linear):
            module.__class__ = nn.Linear
    exact = TranscribedStream(model, RATE, as_released=False)
    released = TranscribedStream(model, RATE)
    scores = [exact.push(frame) for frame in frames]
    for frame in frames:
        released.push(frame)
    scores = torch.stack([x[-1] for x in scores if x is not None])
    return lambda: [released.push(frame) for frame in frames[:steps]], dict(
        scores=scores, rounded=scores)


def prepare_session(model: nn.Module, steps: int, kernel: str,
                    dtype: str = 'float32', compiled: bool = False,
                    graph: bool = False, streams: int = 1) -> common.Prepared:
    frames = frames_of(model)
    session = StreamSession(
        copy.deepcopy(model).to(common.DTYPES[dtype]), RATE, kernel=kernel)
    if compiled:
        session.step.compile()
    sessions = [session.spawn() for _ in range(streams)]
    if graph:
        StreamSession.record_graph(sessions)
    scores = [StreamSession.push_many(sessions, [frame] * streams)[0]
              for frame in frames]
    first = model.backbone.work_memory_length - 1
    scores = torch.stack([x['action'][-1] for x in scores[first:]])
    results = {}
    if kernel == 'smoothing':
        results['rounded' if dtype == 'bfloat16' else 'scores'] = (
            scores.float())

    def push() -> None:
        for frame in frames[:steps]:
            StreamSession.push_many(sessions, [frame] * streams)

    return push, results


def prepare_causal(device: str, weights: str, layers: int, size: int,
                   history: int = 0, whole: bool = False) -> common.Prepared:
    prefix = 'model.backbone.encoder'
    model = mmvidattn.get_model(
        CONFIGS['causal'], device=device, cfg_options={
            f'{prefix}.num_layers': layers, f'{prefix}.img_size': size})
    share_weights(model, weights)
    generator = torch.Generator().manual_seed(1)
    frames = torch.randn(16, 3, size, size, generator=generator).to(device)
    # A session normalizes its frames itself.
    clip = model.data_preprocessor.normalize(frames.unsqueeze(2))
    clip = dict(frames=clip[:, :, 0].transpose(0, 1)[None])

    @torch.no_grad()
    def run_whole() -> Tensor:
        return model(clip)['action'][0]

    if whole:
        return run_whole, dict(scores=run_whole())
    session = StreamSession(model)
    scores = session.push(dict(frames=frames))['action'][:, 0]
    for i in range(16, history):
        session.push(dict(frames=frames[i % 16]))
    return lambda: session.push(dict(frames=frames[0])), dict(scores=scores)


if __name__ == '__main__':
    common.run(__file__, __doc__, prepare, add_arguments, benchmarks)
