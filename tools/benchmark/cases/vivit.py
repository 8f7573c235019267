# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ViViT, models 1 to 4, beside Hugging Face's.

One forward pass of

* ours: ViViT-B/16x2 with the head, models 1 to 4;
* Hugging Face's ``VivitForVideoClassification``, which is Model 1, with each
  implementation of attention that it has ('sdpa', 'eager'), if transformers
  is installed (``pip install transformers``).

Ours and theirs must agree on the same random weights, in outputs and in the
gradients of the clip; without transformers, Model 1 with itself in float64.
"""
import argparse
import copy

import torch
from torch import Tensor, nn

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.backbones import ViViT
from mmvidattn.backbones.vivit import ENCODERS
from mmvidattn.convert import convert
from mmvidattn.heads import ViViTHead
from tools.benchmark.measure import (
    DTYPES,
    agreement_line,
    measure,
    relative,
    require_agreement,
    settings_of,
    title,
)

NUM_CLASSES = 400
# Channels, blocks and heads.
ARCHS = {name: tuple(sizes.values()) for name, sizes in ViViT.arch_zoo.items()}
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


class _InFloat64(nn.Module):
    """The same model, computed in float64."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x.double()).to(x.dtype)


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


def run(args: argparse.Namespace) -> dict:
    device = torch.device(args.device)
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
    compared = {name: models[name] for name in others} or {
        'ours in float64': _InFloat64(models['joint'])}
    agreement = check_agreement(models['joint'], compared, x)
    macs = {}
    for name in ENCODERS:
        with torch.device('meta'):
            macs[name] = count_complexity(
                ours(name, args), torch.empty(1, *x.shape[1:])).macs
    x = x.to(DTYPES[args.dtype])
    for model in models.values():
        model.to(x.dtype)

    def forward(model: nn.Module) -> None:
        with torch.no_grad():
            model(x)

    seconds = measure(
        {n: lambda m=m: forward(m)
         for n, m in models.items()}, args.repeats, device)
    return settings_of(
        args,
        dtype=args.dtype,
        shape=list(x.shape),
        arch=args.arch,
        layers=args.layers or ARCHS[args.arch][1],
        agreement=agreement,
        seconds=seconds,
        gmacs={n: m / 1e9 for n, m in macs.items()},
        times_as_fast_as_joint={
            n: seconds['joint'] / s
            for n, s in seconds.items()
        },
        promised={n: macs['joint'] / m for n, m in macs.items()})


def report(result: dict) -> str:
    lines = [
        title(result, result['dtype'], f'clips {result["shape"]}',
              f'{result["arch"]}, {result["layers"]} layers'),
        agreement_line(result['agreement']),
        f'{"":22}{"seconds":>10}{"GMACs":>10}{"speed":>8}{"promised":>10}'
    ]
    for name, seconds in result['seconds'].items():
        speed = result['times_as_fast_as_joint'][name]
        macs = result['gmacs'].get(name)
        lines.append(f'{name:22}{seconds:10.4f}' + (
            f'{"":10}{speed:8.2f}' if macs is None else
            f'{macs:10.1f}{speed:8.2f}{result["promised"][name]:10.2f}'))
    return '\n'.join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--frames', type=int, default=32)
    parser.add_argument('--size', type=int, default=224)
    parser.add_argument('--arch', choices=list(ARCHS), default='B')
    parser.add_argument('--layers', type=int, help="the arch's by default")
    parser.add_argument('--dtype', choices=DTYPES, default='float32')
