# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ViViT, models 1 to 4, compared with Hugging Face.

One forward pass of

* ours: ViViT-B/16x2 with the head, models 1 to 4;
* Hugging Face's ``VivitForVideoClassification``, which is Model 1, with each
  of its attention implementations ('sdpa', 'eager'), if transformers is
  installed (``pip install transformers``).

With the same random weights, Model 1 must agree with Hugging Face's model in
outputs and in the gradients of the clip; without transformers, with itself in
float64.
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--frames', type=int, default=32)
    parser.add_argument('--size', type=int, default=224)
    parser.add_argument('--arch', choices=list(ARCHS), default='B')
    parser.add_argument('--layers', type=int,
                        help="layers (default: the architecture's number)")
    parser.add_argument('--dtype', choices=DTYPES, default='float32')


def build(name: str, args: argparse.Namespace) -> nn.Module:
    """Build our model, [B, C, T, H, W] to [B, K]."""
    model = nn.Sequential(
        ViViT(num_frames=args.frames, img_size=args.size, model=name,
              arch=args.arch, num_layers=args.layers),
        ViViTHead(NUM_CLASSES, ARCHS[args.arch][0]))
    model[0].init_weights()
    return model


class HuggingFace(nn.Module):
    """Hugging Face's model with our arguments."""

    def __init__(self, implementation: str,
                 args: argparse.Namespace) -> None:
        super().__init__()
        from transformers import VivitConfig, VivitForVideoClassification
        dims, layers, heads = ARCHS[args.arch]
        config = VivitConfig(
            image_size=args.size, num_frames=args.frames,
            tubelet_size=[2, 16, 16], hidden_size=dims,
            num_hidden_layers=args.layers or layers,
            num_attention_heads=heads, intermediate_size=4 * dims,
            hidden_dropout_prob=0., attention_probs_dropout_prob=0.,
            num_labels=NUM_CLASSES)
        config._attn_implementation = implementation
        self.model = VivitForVideoClassification(config)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, C, T, H, W] to [B, K]."""
        return self.model(pixel_values=x.transpose(1, 2)).logits


def build_hugging_face(args: argparse.Namespace) -> dict[str, HuggingFace]:
    """Build Hugging Face's model with each attention and the same weights."""
    try:
        import transformers
    except ImportError:
        print('transformers is not installed; measuring only our models')
        return {}
    transformers.logging.set_verbosity_error()
    models = {f'Hugging Face, {name}': HuggingFace(name, args)
              for name in IMPLEMENTATIONS}
    first, *rest = models.values()
    for parameter in first.parameters():
        # Some parameters start at zero, which would hide their effect.
        nn.init.normal_(parameter, std=0.02)
    for model in rest:
        model.load_state_dict(first.state_dict())
    return models


def copy_weights(model: nn.Module, source: HuggingFace) -> None:
    """Copy the weights of Hugging Face's model to ours."""
    state = convert('vivit_hf', source.model.state_dict())
    for old, new in PREFIXES.items():
        state = {new + name.removeprefix(old) if name.startswith(old) else
                 name: value for name, value in state.items()}
    model.load_state_dict(state)


class _InFloat64(nn.Module):
    """Copy of a model that computes in float64."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x.double()).to(x.dtype)


def check(model: nn.Module, references: dict[str, nn.Module],
          x: Tensor) -> dict[str, float]:
    """Return relative differences of outputs and clip gradients.

    Exits with an error if they are too large.
    """
    results, weight = {}, None
    for name, network in {'ours': model, **references}.items():
        clip = x.clone().requires_grad_()
        y = network(clip)
        weight = torch.randn_like(y) if weight is None else weight
        grad, = torch.autograd.grad((y * weight).sum(), clip)
        results[name] = dict(output=y.detach(), gradient=grad)
    result = {f'{name}, {kind}': relative(results['ours'][kind], value)
              for name in references for kind, value in results[name].items()}
    require_agreement(result)
    return result


def run(args: argparse.Namespace) -> dict:
    # 1. Build the models, all Model 1s with the same weights.
    device = torch.device(args.device)
    torch.manual_seed(0)
    x = torch.randn(args.batch, 3, args.frames, args.size, args.size)
    x = x.to(device)
    models = {name: build(name, args) for name in ENCODERS}
    references = build_hugging_face(args)
    for reference in [*references.values()][:1]:
        copy_weights(models['joint'], reference)
    models = {name: model.to(device).eval()
              for name, model in {**models, **references}.items()}
    # 2. Check, always in float32.
    agreement = check(
        models['joint'], {name: models[name] for name in references} or {
            'ours in float64': _InFloat64(models['joint'])}, x)
    # 3. Count multiply-accumulates.
    gmacs = {}
    for name in ENCODERS:
        with torch.device('meta'):
            gmacs[name] = count_complexity(
                build(name, args), torch.empty(1, *x.shape[1:])).macs / 1e9
    # 4. Measure.
    x = x.to(DTYPES[args.dtype])
    for model in models.values():
        model.to(x.dtype)

    def forward(model: nn.Module) -> None:
        with torch.no_grad():
            model(x)

    seconds = measure({name: lambda model=model: forward(model)
                       for name, model in models.items()}, args.repeats,
                      device)
    return settings_of(
        args, dtype=args.dtype, shape=list(x.shape), arch=args.arch,
        layers=args.layers or ARCHS[args.arch][1], agreement=agreement,
        seconds=seconds, gmacs=gmacs,
        times_as_fast_as_joint={name: seconds['joint'] / s
                                for name, s in seconds.items()},
        promised={name: gmacs['joint'] / g for name, g in gmacs.items()})


def report(result: dict) -> str:
    lines = [
        title(result, result['dtype'], f'clips {result["shape"]}',
              f'{result["arch"]}, {result["layers"]} layers'),
        agreement_line(result['agreement']),
        f'{"":22}{"seconds":>10}{"GMACs":>10}{"speed":>8}{"promised":>10}'
    ]
    for name, seconds in result['seconds'].items():
        speed = result['times_as_fast_as_joint'][name]
        gmacs = result['gmacs'].get(name)
        lines.append(f'{name:22}{seconds:10.4f}' + (
            f'{"":10}{speed:8.2f}' if gmacs is None else
            f'{gmacs:10.1f}{speed:8.2f}{result["promised"][name]:10.2f}'))
    return '\n'.join(lines)
