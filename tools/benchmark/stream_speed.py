# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed of a stream's step, beside the released one.

    python tools/benchmark/stream_speed.py --json results.json

All score the same frames with the same random weights, in one run and in
turns:

* released: a transcription of the released stream step;
* smoothing: ``StreamSession(kernel='smoothing')``, the same recursion;
* window: ``StreamSession(kernel='window')``, equal to windowed evaluation;
* compiled: smoothing, after ``session.step.compile()``;
* graph: smoothing, recorded as a CUDA graph, where there is a GPU.

Nothing is timed unless ``released=True`` and the transcription have the same
scores. Then, of the smoothing kernel: weights in bfloat16 and, on a CPU, in
int8; and how many frames a second many streams in one step come to. Beside
what was compiled or has other weights stands how far its scores are from the
others'.
"""
import argparse
import copy
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from mmengine.config import DictAction  # noqa: E402
from side_by_side import (  # noqa: E402
    machine,
    measure,
    relative,
    require_agreement,
)
from stream_transcription import TranscribedStream  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from mmvidattn.apis import get_model, load_config  # noqa: E402
from mmvidattn.online import StreamSession  # noqa: E402
from mmvidattn.online.few_rows_linear import FewRowsLinear  # noqa: E402

TOLERANCE = 1e-5


def with_plain_layers(model: nn.Module) -> nn.Module:
    """A copy whose linear layers are torch's own."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, FewRowsLinear):
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
    """How far the transcription is from ``released=True``."""
    other = TranscribedStream(with_plain_layers(model), rate)
    ours = StreamSession(model, rate, released=True)
    pairs = []
    for t in range(steps):
        want, got = other.push(frames[t]), ours.push(frames[t])['action']
        if want is not None:
            pairs.append((got, want))
    got, want = (torch.stack(x) for x in zip(*pairs))
    agreement = dict(
        relative=relative(got, want),
        probability=(got.softmax(-1) - want.softmax(-1)).abs().max().item())
    require_agreement(agreement, TOLERANCE)
    return agreement


def compare(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    rate = load_config(args.config).test_dataloader.dataset.get('long_rate', 4)
    model = get_model(
        args.config, device=device, cfg_options=args.cfg_options)
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
            last[name] = session.push(frames[t])['action'].float().softmax(-1)
    probability = {
        name: (last[name] - last['smoothing']).abs().max().item()
        for name in ('compiled', *models) if name in last
    }
    if args.compile:
        require_agreement(
            dict(compiled=probability['compiled']), TOLERANCE)
    seconds = measure(
        dict(released=runner(released.push, frames, args.steps), **{
            name: runner(session.push, frames, args.steps)
            for name, session in sessions.items()
        }), args.repeats, device)
    batches = measure({
        str(n): many(sessions['smoothing'], frames, n, max(1, args.steps // n),
                     device.type == 'cuda')
        for n in args.streams
    }, args.repeats, device)
    return dict(
        version=mmvidattn.__version__,
        config=str(args.config),
        machine=machine(device),
        torch=torch.__version__,
        steps=args.steps,
        repeats=args.repeats,
        agreement=agreement,
        probability=probability,
        milliseconds={k: 1e3 * s / args.steps for k, s in seconds.items()},
        ratio={k: seconds['released'] / s for k, s in seconds.items()},
        frames_a_second={
            n: int(n) * max(1, args.steps // int(n)) / s
            for n, s in batches.items()
        })


def report(result: dict) -> None:
    print(f'{result["machine"]}; torch {result["torch"]}; '
          f'{result["config"]}; {result["steps"]} steps, median of '
          f'{result["repeats"]}')
    print('released=True and the transcription agree: '
          f'{result["agreement"]["relative"]:.1e} (relative), '
          f'{result["agreement"]["probability"]:.1e} (largest, of a '
          'probability)')
    for name, value in result['milliseconds'].items():
        off = result['probability'].get(name)
        note = '' if off is None else f'   probabilities off by {off:.1e}'
        print(f'{name:10}{value:10.2f} ms a step'
              f'{result["ratio"][name]:8.2f} x{note}')
    for name, value in result['frames_a_second'].items():
        print(f'{name:>4} streams{value:10.1f} frames a second')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--config', default='testra_thumos14')
    parser.add_argument('--steps', type=int, default=64)
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument('--check-steps', type=int, default=20)
    parser.add_argument('--streams', type=int, nargs='+', default=[1, 8, 64])
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument(
        '--no-compile', dest='compile', action='store_false',
        help='without the compiled step, which takes a minute to make')
    parser.add_argument('--json', help='write the figures to this file')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    args = parser.parse_args()
    result = compare(args)
    report(result)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
