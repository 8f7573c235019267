# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed and memory of the linear video transformer, side by side.

    python tools/benchmark/linear_ff_speed.py --json results.json

Compares, in one run and in turns, one forward pass and one training step of

* ours: ``LinearVideoTransformer``, as ``configs/linear_ff_ssv2.py`` has it;
* softmax: the same model with explicit softmax attention, ``Q K^T`` written
  out, in the place of linear attention;
* softmax, no fixation: the same, without the gate that it does not need;
* transcription: the paper's equations as they stand (transcription.py).

Nothing is timed unless ours and the transcription agree in outputs and
gradients on the same weights. With ``--memory T H W`` it reports instead the
peak memory of one inference of ours in a process of its own.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from side_by_side import (  # noqa: E402
    check_agreement,
    machine,
    measure,
    peak_memory,
    transcribed,
)
from torch import Tensor, nn  # noqa: E402

from mmvidattn.backbones import LinearVideoTransformer  # noqa: E402
from mmvidattn.layers import BaseAttention  # noqa: E402
from mmvidattn.ops.softmax_attention import (  # noqa: E402
    naive_softmax_attention,
)


class ExplicitSoftmax(BaseAttention):
    """Attention for the backbone with its matrix written out."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *shapes) -> Tensor:
        return naive_softmax_attention(q, k, v)


def with_explicit_softmax(model: nn.Module) -> nn.Module:
    for block in model.blocks:
        for module in (block.temporal_attn, block.spatial_attn):
            of = module.attention
            module.attention = ExplicitSoftmax(of.head_dims, of.num_heads,
                                               of.seq_shape)
    return model


def compare(args: argparse.Namespace) -> dict:
    device = torch.device(args.device)
    torch.manual_seed(0)
    frames, height, width = args.shape
    size = dict(num_frames=frames, num_layers=args.layers)
    ours = LinearVideoTransformer(**size).to(device)
    ours.init_weights()
    x = torch.randn(1, 3, frames, height, width, device=device)
    transcription = transcribed(ours, **size)
    agreement = check_agreement(ours, transcription, x)
    models = {
        'ours':
        ours,
        'softmax':
        with_explicit_softmax(LinearVideoTransformer(**size)).to(device),
        'softmax, no fixation':
        with_explicit_softmax(
            LinearVideoTransformer(fixation=None, **size)).to(device),
        'transcription':
        transcription
    }

    def forward(model: nn.Module) -> None:
        with torch.no_grad():
            model(x)

    def step(model: nn.Module) -> None:
        model(x).square().mean().backward()
        model.zero_grad(set_to_none=True)

    result = dict(
        version=mmvidattn.__version__,
        machine=machine(device),
        torch=torch.__version__,
        dtype='float32',
        shape=[1, 3, frames, height, width],
        layers=args.layers,
        repeats=args.repeats,
        agreement=agreement,
        seconds={},
        ratio_to_ours={})
    for name, function in (('forward', forward), ('training step', step)):
        seconds = measure(
            {n: lambda m=m: function(m)
             for n, m in models.items()}, args.repeats, device)
        result['seconds'][name] = seconds
        result['ratio_to_ours'][name] = {
            n: s / seconds['ours']
            for n, s in seconds.items()
        }
    print(f'{result["machine"]}; torch {torch.__version__}; float32; clip '
          f'{result["shape"]}; {args.layers} layers; median of '
          f'{args.repeats}')
    print(f'ours and the transcription agree: output {agreement["output"]:.1e}'
          f', gradient {agreement["gradient"]:.1e} (relative)')
    print(f'{"":22}' + ''.join(f'{name + " s":>16}{"x ours":>8}'
                               for name in result['seconds']))
    for model in models:
        print(f'{model:22}' + ''.join(
            f'{seconds[model]:16.3f}{seconds[model] / seconds["ours"]:8.2f}'
            for seconds in result['seconds'].values()))
    return result


def report_memory(args: argparse.Namespace) -> dict:
    """Peak of one inference, measured in a process of its own."""
    if '_MMVIDATTN_MEMORY' not in os.environ:
        env = dict(os.environ, _MMVIDATTN_MEMORY='1')
        out = subprocess.run([sys.executable, *sys.argv],
                             env=env,
                             check=True,
                             stdout=subprocess.PIPE,
                             text=True).stdout
        print(out, end='')
        return json.loads(out.splitlines()[-1])
    device = torch.device(args.device)
    frames, height, width = args.memory
    model = LinearVideoTransformer(
        num_frames=frames, num_layers=args.layers).to(device).eval()
    x = torch.randn(1, 3, frames, height, width, device=device)
    with torch.no_grad():
        model(x)
    peak, what = peak_memory(device)
    result = dict(
        machine=machine(device),
        shape=[1, 3, frames, height, width],
        peak_gib=peak,
        what=what)
    print(f'peak memory of a {frames}x{height}x{width} clip: '
          f'{peak:.2f} GiB {what}')
    print(json.dumps(result))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--shape', nargs=3, type=int, default=(16, 224, 224))
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument(
        '--memory',
        nargs=3,
        type=int,
        metavar=('T', 'H', 'W'),
        help='report the peak memory of one inference instead')
    parser.add_argument('--json', help='write the figures to this file')
    args = parser.parse_args()
    result = report_memory(args) if args.memory else compare(args)
    if args.json and '_MMVIDATTN_MEMORY' not in os.environ:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
