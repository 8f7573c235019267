# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed of LAPS, side by side.

    python tools/benchmark/laps_speed.py --json results.json

Compares, in one run and in turns, one forward pass and one training step of

* LAPS: ``Visformer`` with leap attention and periodic shift, as
  ``configs/laps_visformer_k400.py`` has it;
* 2D: the same network, each frame by itself;
* 3D: the same, attention among the tokens of all frames;
* transcription: LAPS as its equations stand, with gathers, an explicit
  softmax and copied shifts (laps_transcription.py).

Nothing is timed unless LAPS and the transcription agree in outputs and
gradients on the same weights.
"""
import argparse
import copy
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from laps_transcription import TranscribedLAPSAttention  # noqa: E402
from side_by_side import check_agreement, machine, measure  # noqa: E402
from torch import nn  # noqa: E402

from mmvidattn.backbones import Visformer  # noqa: E402

KINDS = {
    'LAPS': dict(attention='leap', shift='periodic'),
    '2D': dict(attention='2d', shift='none'),
    '3D': dict(attention='3d', shift='none'),
}


def transcribed(model: nn.Module) -> nn.Module:
    """The same network, weights included, with transcribed attention."""
    model = copy.deepcopy(model)
    for stage in (model.stage2, model.stage3):
        for block in stage:
            block.attn = TranscribedLAPSAttention(block.attn)
    return model


def compare(args: argparse.Namespace) -> dict:
    device = torch.device(args.device)
    dtype = getattr(torch, args.dtype)
    torch.manual_seed(0)
    frames, height, width = args.shape
    models = {
        name: Visformer(args.arch, frames, (height, width), **kind).to(device)
        for name, kind in KINDS.items()
    }
    models['LAPS'].init_weights()
    for model in models.values():
        model.load_state_dict(models['LAPS'].state_dict())
    models['transcription'] = transcribed(models['LAPS'])
    x = torch.randn(args.batch, 3, frames, height, width, device=device)
    for model in models.values():
        model.eval()
    # In float64: the gradients of random weights magnify rounding.
    agreement = check_agreement(
        *(models[name].double() for name in ('LAPS', 'transcription')),
        x.double())
    for model in models.values():
        model.float()

    def autocast() -> torch.autocast:
        return torch.autocast(
            device.type, dtype, enabled=dtype != torch.float32)

    def forward(model: nn.Module) -> None:
        with torch.no_grad(), autocast():
            model.eval()(x)

    def step(model: nn.Module) -> None:
        with autocast():
            loss = model.train()(x).float().square().mean()
        loss.backward()
        model.zero_grad(set_to_none=True)

    result = dict(
        version=mmvidattn.__version__,
        machine=machine(device),
        torch=torch.__version__,
        dtype=args.dtype,
        arch=args.arch,
        shape=list(x.shape),
        repeats=args.repeats,
        agreement=agreement,
        seconds={},
        ratio_to_2d={})
    for name, function in (('forward', forward), ('training step', step)):
        seconds = measure(
            {n: lambda m=m: function(m)
             for n, m in models.items()}, args.repeats, device)
        result['seconds'][name] = seconds
        result['ratio_to_2d'][name] = {
            n: s / seconds['2D']
            for n, s in seconds.items()
        }
    print(f'{result["machine"]}; torch {torch.__version__}; {args.dtype}; '
          f'Visformer {args.arch}; clips {result["shape"]}; median of '
          f'{args.repeats}')
    print(f'LAPS and the transcription agree: output '
          f'{agreement["output"]:.1e}, gradient {agreement["gradient"]:.1e} '
          '(relative)')
    print(f'{"":16}' + ''.join(f'{name + " s":>18}{"x 2D":>8}'
                               for name in result['seconds']))
    for model in models:
        print(f'{model:16}' + ''.join(
            f'{seconds[model]:18.4f}{seconds[model] / seconds["2D"]:8.3f}'
            for seconds in result['seconds'].values()))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--shape', nargs=3, type=int, default=(8, 224, 224))
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--arch', choices=('tiny', 'small'), default='small')
    parser.add_argument('--repeats', type=int, default=9)
    parser.add_argument(
        '--dtype', choices=('float32', 'bfloat16'), default='float32')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--json', help='write the figures to this file')
    args = parser.parse_args()
    result = compare(args)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
