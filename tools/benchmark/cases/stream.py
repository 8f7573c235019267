# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Stream step, compared with the released code.

All variants score the same frames with the same random weights:

* released: a transcription of the released stream step;
* smoothing: ``StreamSession(kernel='smoothing')``, the same recursion;
* window: ``StreamSession(kernel='window')``, equal to windowed evaluation;
* compiled: smoothing, after ``session.step.compile()``;
* graph: smoothing, recorded as a CUDA graph, on a GPU;
* bfloat16, and int8 on a CPU: smoothing with such weights.

The smoothing kernel must have the same scores as the transcription without
the released stream's differences from the paper (``as_released=False``). For
compiled steps and low-precision weights, the report has the difference of
the scores from the smoothing kernel's scores. The last lines are for many
streams in one push: frames per second and latency of a push.
"""
import argparse
import copy
import math
import statistics
import warnings
from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor, nn

from mmvidattn.layers.linear import Linear
from mmvidattn.online import StreamSession
from tools.benchmark.measure import (
    add_online_model,
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
    """Copy a model with torch's linear layers."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, Linear):
            module.__class__ = nn.Linear
    return model


def in_int8(model: nn.Module,
            layers: Collection[str | type] = (nn.Linear, )) -> nn.Module:
    """Copy a model with int8 weights in some linear layers, for a CPU.

    Args:
        model: Model with any linear layers.
        layers: Names or types of the layers. Defaults to all linear layers.
    """
    with warnings.catch_warnings():
        # torch warns that quantization will move to another package.
        warnings.simplefilter('ignore')
        return torch.ao.quantization.quantize_dynamic(
            with_plain_layers(model), {*layers}, dtype=torch.qint8)


class Frames:
    """Endless repetition of random frames."""

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
    """Return the smallest value that a share of the values does not exceed."""
    values = sorted(values)
    return values[max(0, math.ceil(share * len(values)) - 1)]


def latency(push: Callable, pushes: int, streams: int,
            device: torch.device) -> dict[str, float]:
    """Measure pushes of many streams in one step."""
    times = times_of(push, pushes, device)
    return dict(
        pushes=pushes, frames_a_second=streams * pushes / sum(times),
        **{f'p{round(100 * share)}': 1e3 * percentile(times, share)
           for share in (0.5, 0.95, 0.99)})


def runner(push: Callable, frames: Frames, steps: int) -> Callable:
    """Return a function that pushes the same steps in each call."""
    return lambda: [push(frames[t]) for t in range(steps)]


def many(session: StreamSession, frames: Frames, streams: int,
         steps: int, graph: bool) -> Callable:
    """Return a function that pushes steps of many streams.

    The streams have different ages.
    """
    sessions = [session.spawn() for _ in range(streams)]
    for i, spawned in enumerate(sessions[:8]):
        for t in range(i):
            spawned.push(frames[t])
    if graph:
        StreamSession.record_graph(sessions)

    def run() -> None:
        for t in range(steps):
            StreamSession.push_many(
                sessions, [frames[t + i] for i in range(streams)])

    return run


def check(model: nn.Module, frames: Frames, rate: int,
          steps: int) -> dict[str, float]:
    """Compare the scores of the smoothing kernel and of the transcription."""
    reference = TranscribedStream(
        with_plain_layers(model), rate, as_released=False)
    ours = StreamSession(model, rate, kernel='smoothing')
    pairs = []
    for t in range(steps):
        want, got = reference.push(frames[t]), ours.push(frames[t])['action']
        if want is not None:
            pairs.append((got, want[-len(got):]))
    got, want = (torch.stack(x) for x in zip(*pairs))
    agreement = dict(
        relative=relative(got, want),
        probability=probability_difference(got, want))
    require_agreement(agreement, TOLERANCE)
    return agreement


def run(args: argparse.Namespace) -> dict:
    # 1. Build the model, and check the smoothing kernel.
    torch.manual_seed(0)
    device = torch.device(args.device)
    model, rate = online_model(args)
    # Initial biases are zero, which would hide their effect.
    for p in model.parameters():
        if p.dim() == 1:
            torch.nn.init.normal_(p, std=0.02)
    frames = Frames(model, device)
    warm = model.backbone.work_memory_length + 2 * rate
    agreement = check(model, frames, rate, warm + args.check_steps)
    # 2. Build the variants, and fill their work memories.
    sessions = {kernel: StreamSession(model, rate, kernel=kernel)
                for kernel in ('smoothing', 'window')}
    if args.compile:
        sessions['compiled'] = StreamSession(model, rate, kernel='smoothing')
        sessions['compiled'].step.compile()
    if device.type == 'cuda':
        sessions['graph'] = sessions['smoothing'].spawn()
        StreamSession.record_graph([sessions['graph']])
    models = dict(bfloat16=copy.deepcopy(model).bfloat16())
    if device.type == 'cpu':
        models['int8'] = in_int8(model)
    for name, variant in models.items():
        sessions[name] = StreamSession(variant, rate, kernel='smoothing')
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
    # 3. Measure one stream, then many.
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
        args, config=str(args.config), steps=args.steps, fastest=args.fastest,
        agreement=agreement, probability=probability,
        milliseconds={k: 1e3 * s / args.steps for k, s in seconds.items()},
        ratio={k: seconds['released'] / s for k, s in seconds.items()},
        streams=streams)


def report(result: dict) -> str:
    lines = [
        title(result, result['config'], f'{result["steps"]} steps'),
        'the smoothing kernel and the reference agree: '
        f'{result["agreement"]["relative"]:.1e} (relative), '
        f'{result["agreement"]["probability"]:.1e} (largest difference of a '
        'probability)'
    ]
    for name, value in result['milliseconds'].items():
        off = result['probability'].get(name)
        note = '' if off is None else f'   probabilities differ by {off:.1e}'
        lines.append(f'{name:10}{value:10.2f} ms/step'
                     f'{result["ratio"][name]:8.2f} x{note}')
    for name, rows in result['streams'].items():
        for n, row in rows.items():
            lines.append(
                f'{name:10}{n:>4} streams{row["frames_a_second"]:10.1f} '
                'frames/s; ' + ', '.join(
                    f'{p} {row[p]:.1f}' for p in ('p50', 'p95', 'p99'))
                + f' ms per push ({row["pushes"]} pushes)')
    return '\n'.join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_online_model(parser)
    parser.add_argument('--steps', type=int, default=64)
    parser.add_argument('--check-steps', type=int, default=20)
    parser.add_argument('--streams', type=int, nargs='+', default=[1, 8, 64])
    parser.add_argument(
        '--pushes', type=int, default=20,
        help='smallest number of pushes of many streams (default: '
        '%(default)s)')
    parser.add_argument(
        '--fastest', action='store_true',
        help='take the fastest run of one stream instead of the median; use '
        'it with --steps 1 on a shared machine')
    parser.add_argument(
        '--no-compile', dest='compile', action='store_false',
        help='leave out the compiled step; compilation takes a minute')
