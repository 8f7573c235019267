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
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from transcription import TranscribedLinearVideoTransformer  # noqa: E402

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


def transcribed(model: nn.Module, **kwargs) -> nn.Module:
    """The transcription with the weights of our model."""
    state = {
        name.replace('_attn_norm.', '_norm.'): value
        for name, value in model.state_dict().items()
    }
    state['temporal_embed'] = state['temporal_embed'].squeeze(2)
    other = TranscribedLinearVideoTransformer(**kwargs)
    other.load_state_dict(state)
    return other.to(state['temporal_embed'].device)


def relative(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def check_agreement(ours: nn.Module, other: nn.Module, x: Tensor) -> dict:
    """Relative difference of outputs and gradients, or an error."""
    weight = torch.randn_like(ours(x).detach())
    outputs, grads = [], []
    for model in (ours, other):
        y = model(x)
        (y * weight).sum().backward()
        outputs.append(y.detach())
        grads.append(
            torch.cat([p.grad.flatten() for p in model.parameters()]))
        model.zero_grad(set_to_none=True)
    # Both have their parameters in the same order.
    result = dict(output=relative(*outputs), gradient=relative(*grads))
    if max(result.values()) > 1e-4:
        raise SystemExit(f'no timing: ours and the transcription differ by '
                         f'{result}')
    return result


def measure(functions: dict[str, Callable], repeats: int,
            device: torch.device) -> dict[str, float]:
    """Median seconds of each, called in turns after one warm-up."""
    times = {name: [] for name in functions}
    for repeat in range(repeats + 1):
        for name, function in functions.items():
            if device.type == 'cuda':
                torch.cuda.synchronize()
            start = time.perf_counter()
            function()
            if device.type == 'cuda':
                torch.cuda.synchronize()
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def machine(device: torch.device) -> str:
    if device.type == 'cuda':
        return torch.cuda.get_device_name()
    name = platform.processor()
    cpuinfo = Path('/proc/cpuinfo')
    if cpuinfo.exists():
        name = next((line.split(':')[1].strip()
                     for line in cpuinfo.read_text().splitlines()
                     if line.startswith('model name')), name)
    return f'{name}, {torch.get_num_threads()} threads'


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


def peak_memory(args: argparse.Namespace) -> dict:
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
    if device.type == 'cuda':
        peak, what = torch.cuda.max_memory_allocated(), 'allocated'
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        what = 'resident, Python and torch included'
    result = dict(
        machine=machine(device),
        shape=[1, 3, frames, height, width],
        peak_gib=peak / 2**30,
        what=what)
    print(f'peak memory of a {frames}x{height}x{width} clip: '
          f'{peak / 2**30:.2f} GiB {what}')
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
    result = peak_memory(args) if args.memory else compare(args)
    if args.json and '_MMVIDATTN_MEMORY' not in os.environ:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
