# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A stream's step beside the released one.

All score the same frames with the same random weights:

* released: a transcription of the released stream step;
* smoothing: ``StreamSession(kernel='smoothing')``, the same recursion;
* window: ``StreamSession(kernel='window')``, equal to windowed evaluation;
* compiled: smoothing, after ``session.step.compile()``;
* graph: smoothing, recorded as a CUDA graph, where there is a GPU.

The smoothing kernel must have the scores of the transcription without the
released stream's departures from the paper (``as_released=False``). Then, of
the smoothing kernel: weights in bfloat16 and, on a CPU, in int8. Beside what
was compiled or has other weights stands how far its scores are from the
others'. At last many streams that are pushed together, of each of these
weights: frames a second, and the latency of a push.
"""
import argparse
import copy
import math
import statistics
import warnings
from collections.abc import Callable, Sequence

import torch
from mmengine.config import DictAction
from torch import Tensor, nn

from mmvidattn.layers.linear import Linear
from mmvidattn.online import StreamSession
from tools.benchmark.measure import (
    measure,
    online_model,
    probability_difference,
    relative,
    require_agreement,
    settings_of,
    times_of,
    title,
)
from tools.benchmark.references.testra_stream import TranscribedStream

TOLERANCE = 1e-5


def with_plain_layers(model: nn.Module) -> nn.Module:
    """A copy whose linear layers are torch's own."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, Linear):
            module.__class__ = nn.Linear
    return model


def in_int8(model: nn.Module) -> nn.Module:
    """A copy with the weights of its linear layers in int8, on a CPU."""
    with warnings.catch_warnings():
        # It is to move to another package.
        warnings.simplefilter('ignore')
        return torch.ao.quantization.quantize_dynamic(
            with_plain_layers(model), {nn.Linear}, dtype=torch.qint8)


class Frames:
    """Random frames, over and over."""

    def __init__(self, model: nn.Module, device: torch.device,
                 length: int = 64) -> None:
        self.video = {
            name: torch.randn(length, channels, device=device)
            for name, channels in model.backbone.in_channels.items()
        }
        self.length = length

    def __getitem__(self, t: int) -> dict[str, Tensor]:
        return {name: x[t % self.length] for name, x in self.video.items()}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many are not above."""
    values = sorted(values)
    return values[max(0, math.ceil(share * len(values)) - 1)]


def latency(push: Callable, pushes: int, streams: int,
            device: torch.device) -> dict[str, float]:
    """Of many streams in one step, after one to warm up."""
    times = times_of(push, pushes, device)
    return dict(
        pushes=pushes, frames_a_second=streams * pushes / sum(times),
        **{f'p{round(100 * share)}': 1e3 * percentile(times, share)
           for share in (0.5, 0.95, 0.99)})


def runner(push: Callable, frames: Frames, steps: int) -> Callable:
    """Pushes some steps, anew each time it is called."""
    return lambda: [push(frames[t]) for t in range(steps)]


def many(session: StreamSession, frames: Frames, streams: int,
         steps: int, graph: bool) -> Callable:
    """Pushes some steps of many streams that differ in age."""
    sessions = [session.spawn() for _ in range(streams)]
    for i, other in enumerate(sessions[:8]):
        for t in range(i):
            other.push(frames[t])
    if graph:
        StreamSession.record_graph(sessions)

    def run() -> None:
        for t in range(steps):
            StreamSession.push_many(
                sessions, [frames[t + i] for i in range(streams)])

    return run


def check(model: nn.Module, frames: Frames, rate: int,
          steps: int) -> dict[str, float]:
    """How far the smoothing kernel's scores are from the transcription's."""
    other = TranscribedStream(
        with_plain_layers(model), rate, as_released=False)
    ours = StreamSession(model, rate, kernel='smoothing')
    pairs = []
    for t in range(steps):
        want, got = other.push(frames[t]), ours.push(frames[t])['action']
        if want is not None:
            pairs.append((got, want[-len(got):]))
    got, want = (torch.stack(x) for x in zip(*pairs))
    agreement = dict(
        relative=relative(got, want),
        probability=probability_difference(got, want))
    require_agreement(agreement, TOLERANCE)
    return agreement


def run(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    model, rate = online_model(args)
    # Fresh biases are zero, and would hide what they do.
    for p in model.parameters():
        if p.dim() == 1:
            torch.nn.init.normal_(p, std=0.02)
    frames = Frames(model, device)
    warm = model.backbone.work_memory_length + 2 * rate
    agreement = check(model, frames, rate, warm + args.check_steps)

    sessions = {
        kernel: StreamSession(model, rate, kernel=kernel)
        for kernel in ('smoothing', 'window')
    }
    if args.compile:
        sessions['compiled'] = StreamSession(model, rate, kernel='smoothing')
        sessions['compiled'].step.compile()
    if device.type == 'cuda':
        sessions['graph'] = sessions['smoothing'].spawn()
        StreamSession.record_graph([sessions['graph']])
    models = dict(bfloat16=copy.deepcopy(model).bfloat16())
    if device.type == 'cpu':
        models['int8'] = in_int8(model)
    for name, other in models.items():
        sessions[name] = StreamSession(other, rate, kernel='smoothing')
    released = TranscribedStream(with_plain_layers(model), rate)
    last = {}
    for t in range(warm):
        released.push(frames[t])
        for name, session in sessions.items():
            last[name] = session.push(frames[t])['action']
    probability = {
        name: probability_difference(last[name], last['smoothing'])
        for name in ('compiled', *models) if name in last
    }
    if args.compile:
        require_agreement(
            dict(compiled=probability['compiled']), TOLERANCE)
    seconds = measure(
        dict(released=runner(released.push, frames, args.steps), **{
            name: runner(session.push, frames, args.steps)
            for name, session in sessions.items()
        }), args.repeats, device, min if args.fastest else statistics.median)
    streams = {
        name: {
            n: latency(
                many(sessions[name], frames, n, 1, device.type == 'cuda'),
                max(args.pushes, args.steps // n), n, device)
            for n in args.streams
        }
        for name in ('smoothing', *models)
    }
    return settings_of(
        args,
        config=str(args.config),
        steps=args.steps,
        fastest=args.fastest,
        agreement=agreement,
        probability=probability,
        milliseconds={k: 1e3 * s / args.steps for k, s in seconds.items()},
        ratio={k: seconds['released'] / s for k, s in seconds.items()},
        streams=streams)


def report(result: dict) -> str:
    lines = [
        title(result, result['config'], f'{result["steps"]} steps'),
        'the smoothing kernel and the reference agree: '
        f'{result["agreement"]["relative"]:.1e} (relative), '
        f'{result["agreement"]["probability"]:.1e} (largest, of a '
        'probability)'
    ]
    for name, value in result['milliseconds'].items():
        off = result['probability'].get(name)
        note = '' if off is None else f'   probabilities off by {off:.1e}'
        lines.append(f'{name:10}{value:10.2f} ms a step'
                     f'{result["ratio"][name]:8.2f} x{note}')
    for name, rows in result['streams'].items():
        for n, row in rows.items():
            lines.append(
                f'{name:10}{n:>4} streams{row["frames_a_second"]:10.1f} '
                'frames a second; ' + ', '.join(
                    f'{p} {row[p]:.1f}' for p in ('p50', 'p95', 'p99'))
                + f' ms a push (of {row["pushes"]})')
    return '\n'.join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--config', default='testra_thumos14')
    parser.add_argument('--steps', type=int, default=64)
    parser.add_argument('--check-steps', type=int, default=20)
    parser.add_argument('--streams', type=int, nargs='+', default=[1, 8, 64])
    parser.add_argument(
        '--pushes', type=int, default=20,
        help='of many streams, at least (default: %(default)s)')
    parser.add_argument(
        '--fastest', action='store_true',
        help='take the fastest run of one stream instead of the median: with '
        '--steps 1, for machines that other programs use')
    parser.add_argument(
        '--no-compile', dest='compile', action='store_false',
        help='without the compiled step, which takes a minute to make')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
