# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed and memory of DualFormer, side by side.

    python tools/benchmark/dualformer_speed.py --json results.json

Compares, in one run and in turns, one forward pass and one training step of
ours, ``DualFormer``, and of a transcription with explicit softmax and
permuted copies (dualformer_transcription.py). Nothing is timed unless the two
agree in outputs and gradients on the same weights. The peak memory of each,
of one forward pass and of one training step, is that of a process of its own.
"""
import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from dualformer_transcription import (  # noqa: E402
    ARCHS,
    TranscribedDualFormer,
)
from side_by_side import (  # noqa: E402
    check_agreement,
    check_outputs,
    machine,
    measure,
    peak_memory,
)
from torch import Tensor, nn  # noqa: E402

from mmvidattn.backbones import DualFormer  # noqa: E402

MODELS = dict(ours=DualFormer, transcription=TranscribedDualFormer)
TASKS = 'forward', 'training step'


def task(name: str, model: nn.Module, x: Tensor) -> Callable[[], None]:

    def forward() -> None:
        with torch.no_grad():
            model(x)

    def step() -> None:
        model(x).square().mean().backward()
        model.zero_grad(set_to_none=True)

    return forward if name == 'forward' else step


def clips_of(args: argparse.Namespace) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(args.batch_size, 3, *args.shape, device=args.device)


def compare(args: argparse.Namespace) -> dict:
    device = torch.device(args.device)
    x = clips_of(args)
    models = {name: kind(args.arch).to(device)
              for name, kind in MODELS.items()}
    ours, other = models.values()
    ours.init_weights()
    other.load_state_dict(ours.state_dict())
    result = dict(
        version=mmvidattn.__version__,
        machine=machine(device),
        torch=torch.__version__,
        dtype='float32',
        arch=args.arch,
        shape=list(x.shape),
        repeats=args.repeats,
        agreement={},
        seconds={},
        ratio_to_ours={},
        peak_gib={})
    for name in TASKS:
        # Each task after its own check: memory that training has left would
        # make inference faster than it is.
        if name == 'forward':
            result['agreement'].update(check_outputs(ours, other, x))
        else:
            result['agreement'].update(check_agreement(ours, other, x))
        for model in models.values():
            model.train(name != 'forward')
        seconds = measure({n: task(name, m, x) for n, m in models.items()},
                          args.repeats, device)
        result['seconds'][name] = seconds
        result['ratio_to_ours'][name] = {
            n: s / seconds['ours'] for n, s in seconds.items()}
    return result


def measure_memory(args: argparse.Namespace) -> dict:
    """Peak in GiB of each task and model, each in a process of its own."""
    peaks = {}
    for name in TASKS:
        peaks[name] = {}
        for model in MODELS:
            command = [
                sys.executable, __file__, '--arch', args.arch, '--device',
                args.device, '--batch-size', str(args.batch_size), '--shape',
                *map(str, args.shape), '--peak', name, model]
            out = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True).stdout
            peaks[name][model] = float(out.split()[-1])
    return peaks


def print_peak(args: argparse.Namespace) -> None:
    name, model = args.peak
    device = torch.device(args.device)
    x = clips_of(args)
    task(name, MODELS[model](args.arch).to(device), x)()
    print(peak_memory(device)[0])


def report(result: dict) -> None:
    agreement = result['agreement']
    print(f'{result["machine"]}; torch {result["torch"]}; float32; '
          f'DualFormer-{result["arch"]}; clips {result["shape"]}; median of '
          f'{result["repeats"]}')
    print(f'ours and the transcription agree: output {agreement["output"]:.1e}'
          f', gradient {agreement["gradient"]:.1e} (relative)')
    print(f'{"":15}' + ''.join(f'{name + " s":>17}{"x ours":>8}{"GiB":>7}'
                               for name in TASKS))
    for model in MODELS:
        print(f'{model:15}' + ''.join(
            f'{result["seconds"][name][model]:17.3f}'
            f'{result["ratio_to_ours"][name][model]:8.2f}'
            f'{result["peak_gib"][name][model]:7.2f}' for name in TASKS))
    print('GiB: peak memory of a process, Python and torch included (on a '
          'GPU: what torch had allocated).')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--arch', choices=ARCHS, default='tiny')
    parser.add_argument(
        '--shape',
        nargs=3,
        type=int,
        default=(32, 224, 224),
        metavar=('T', 'H', 'W'),
        help='T a multiple of 16, H and W of 224 (default: 32 224 224)')
    parser.add_argument('--batch-size', type=int, default=1)
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--json', help='write the figures to this file')
    parser.add_argument(
        '--peak', nargs=2, metavar=('TASK', 'MODEL'), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        print_peak(args)
        return
    result = compare(args)
    result['peak_gib'] = measure_memory(args)
    report(result)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
