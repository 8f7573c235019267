# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed of ViViT, side by side with that of Hugging Face.

    python tools/benchmark/vivit_speed.py --json results.json

Compares, in one run and in turns, one forward pass of

* ours: ViViT-B/16x2 with the head, models 1 to 4;
* Hugging Face's ``VivitForVideoClassification``, which is Model 1, with each
  implementation of attention that it has ('sdpa', 'eager'), if transformers
  is installed (``pip install transformers``).

Nothing is timed unless ours and theirs agree on the same random weights, in
outputs and in the gradients of the clip.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from side_by_side import (  # noqa: E402
    machine,
    measure,
    relative,
    require_agreement,
)
from torch import Tensor, nn  # noqa: E402

from mmvidattn.backbones import ViViT  # noqa: E402
from mmvidattn.backbones.vivit import ARCHS, ENCODERS  # noqa: E402
from mmvidattn.convert import convert  # noqa: E402
from mmvidattn.heads import ViViTHead  # noqa: E402
from mmvidattn.utils.complexity import count_complexity  # noqa: E402

NUM_CLASSES = 400
IMPLEMENTATIONS = 'sdpa', 'eager'
PREFIXES = {'backbone.': '0.', 'cls_head.': '1.'}


def ours(name: str, args: argparse.Namespace) -> nn.Module:
    """A model [B, C, T, H, W] to [B, K]."""
    model = nn.Sequential(
        ViViT(
            num_frames=args.frames,
            img_size=args.size,
            model=name,
            arch=args.arch,
            num_layers=args.layers), ViViTHead(NUM_CLASSES,
                                               ARCHS[args.arch][0]))
    model[0].init_weights()
    return model


class HuggingFace(nn.Module):
    """Theirs, with our arguments."""

    def __init__(self, implementation: str,
                 args: argparse.Namespace) -> None:
        super().__init__()
        from transformers import VivitConfig, VivitForVideoClassification
        dims, layers, heads = ARCHS[args.arch]
        config = VivitConfig(
            image_size=args.size,
            num_frames=args.frames,
            tubelet_size=[2, 16, 16],
            hidden_size=dims,
            num_hidden_layers=args.layers or layers,
            num_attention_heads=heads,
            intermediate_size=4 * dims,
            hidden_dropout_prob=0.,
            attention_probs_dropout_prob=0.,
            num_labels=NUM_CLASSES)
        config._attn_implementation = implementation
        self.model = VivitForVideoClassification(config)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, T, H, W] to [B, K]."""
        return self.model(pixel_values=x.transpose(1, 2)).logits


def theirs(args: argparse.Namespace) -> dict[str, nn.Module]:
    """Hugging Face's model with each attention, all of the same weights."""
    try:
        import transformers
    except ImportError:
        print('transformers is not installed: ours alone')
        return {}
    transformers.logging.set_verbosity_error()
    models = {
        f'Hugging Face, {name}': HuggingFace(name, args)
        for name in IMPLEMENTATIONS
    }
    first, *others = models.values()
    for parameter in first.parameters():
        # Far from zero, also where they start at zero.
        nn.init.normal_(parameter, std=0.02)
    for other in others:
        other.load_state_dict(first.state_dict())
    return models


def copy_weights(model: nn.Module, other: HuggingFace) -> None:
    """Put their weights into ours."""
    state_dict = convert('vivit_hf', other.model.state_dict())
    for old, new in PREFIXES.items():
        state_dict = {
            new + name.removeprefix(old) if name.startswith(old) else name:
            value
            for name, value in state_dict.items()
        }
    model.load_state_dict(state_dict)


def check_agreement(model: nn.Module, others: dict[str, nn.Module],
                    x: Tensor) -> dict[str, float]:
    """Relative differences of outputs and of gradients, or an error."""
    found, weight = {}, None
    for name, other in {'ours': model, **others}.items():
        clip = x.clone().requires_grad_()
        y = other(clip)
        weight = torch.randn_like(y) if weight is None else weight
        grad, = torch.autograd.grad((y * weight).sum(), clip)
        found[name] = y.detach(), grad
    result = {
        f'{name}, {kind}': relative(a, b)
        for name in others
        for kind, a, b in zip(('output', 'gradient'), found['ours'],
                              found[name])
    }
    require_agreement(result)
    return result


def compare(args: argparse.Namespace) -> dict:
    device, dtype = torch.device(args.device), getattr(torch, args.dtype)
    torch.manual_seed(0)
    x = torch.randn(args.batch, 3, args.frames, args.size, args.size)
    x = x.to(device)
    models = {name: ours(name, args) for name in ENCODERS}
    others = theirs(args)
    for other in others.values():
        copy_weights(models['joint'], other)
        break
    models = {
        name: model.to(device).eval()
        for name, model in {**models, **others}.items()
    }
    # In float32, whatever is timed.
    agreement = check_agreement(models['joint'],
                                {name: models[name] for name in others}, x)
    macs = {}
    for name in ENCODERS:
        with torch.device('meta'):
            macs[name] = count_complexity(
                ours(name, args), torch.empty(1, *x.shape[1:])).macs
    x = x.to(dtype)
    for model in models.values():
        model.to(dtype)

    def forward(model: nn.Module) -> None:
        with torch.no_grad():
            model(x)

    seconds = measure(
        {n: lambda m=m: forward(m)
         for n, m in models.items()}, args.repeats, device)
    result = dict(
        version=mmvidattn.__version__,
        machine=machine(device),
        torch=torch.__version__,
        dtype=args.dtype,
        shape=list(x.shape),
        arch=args.arch,
        layers=args.layers or ARCHS[args.arch][1],
        repeats=args.repeats,
        agreement=agreement,
        seconds=seconds,
        gmacs={n: m / 1e9 for n, m in macs.items()},
        times_as_fast_as_joint={
            n: seconds['joint'] / s
            for n, s in seconds.items()
        },
        promised={n: macs['joint'] / m for n, m in macs.items()})
    print(f'{result["machine"]}; torch {torch.__version__}; {args.dtype}; '
          f'clips {result["shape"]}; {args.arch}, {result["layers"]} layers; '
          f'median of {args.repeats}')
    for name, difference in agreement.items():
        print(f'ours and {name}: {difference:.1e} (relative)')
    print(f'{"":22}{"seconds":>10}{"GMACs":>10}{"speed":>8}{"promised":>10}')
    for name, second in seconds.items():
        print(f'{name:22}{second:10.4f}' + (
            f'{macs[name] / 1e9:10.1f}{seconds["joint"] / second:8.2f}'
            f'{result["promised"][name]:10.2f}' if name in macs else
            f'{"":10}{seconds["joint"] / second:8.2f}'))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--frames', type=int, default=32)
    parser.add_argument('--size', type=int, default=224)
    parser.add_argument('--arch', choices=list(ARCHS), default='B')
    parser.add_argument('--layers', type=int, help="the arch's by default")
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument(
        '--dtype', choices=('float32', 'bfloat16', 'float16'),
        default='float32')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--json', help='write the figures to this file')
    args = parser.parse_args()
    result = compare(args)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
