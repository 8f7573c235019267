# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Leap attention and shift for a network of images that is there already."""
import copy
import inspect
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from .frame_mixing import FrameMixing

MIXING = 'frame_mixing'
# What stands around the attention itself and sees each token alone.
_CHILDREN = {
    'qkv', 'q_norm', 'k_norm', 'attn_drop', 'norm', 'gate', 'proj',
    'proj_drop', 'out_drop', 'gamma1'
}
# Options of the forward of timm's modules that change nothing when not set.
_UNSET = dict(attn_mask=None, is_causal=False)


def inflate(model: nn.Module,
            num_frames: int,
            pyramid: Sequence[int] = (1, 2, 3),
            shift: str = 'periodic',
            attention: str = 'leap',
            shift_fraction: float = 0.25,
            shift_first: str = 'next',
            skip: Sequence[str] = ()) -> nn.Module:
    """Turn a transformer of images into one of videos, in place.

    `Long-term Leap Attention, Short-term Periodic Shift for Video
    Classification <https://arxiv.org/abs/2207.05526>`_. The network goes on
    to take images, [B T, C, H, W], the T frames of a clip one after another,
    and to give what it gives for each. Parameters and the keys of the state
    dict stay what they are.

    Nothing is replaced: before an attention the tokens of the frames that
    shall attend to one another are put into one sequence, and before its
    output projection they are parted again and shifted. That is right for
    any attention that treats its tokens alike and calls its projection
    ``proj`` once, as the self-attentions of timm (``Attention`` of linear
    layers, that of Visformer of 1x1 convolutions) and mmpretrain
    (``MultiheadAttention``) do; each is tried out on random tokens.

    Args:
        model: The network.
        num_frames: Frames T of a clip.
        pyramid: Levels R of leap attention, repeated over the attentions in
            the order of ``model.modules()``.
        shift: 'none', 'plain' or 'periodic'.
        attention: '2d', '3d' or 'leap'.
        shift_fraction: Part of the channels a shift takes from either side.
        shift_first: Where the first part comes from, the 'next' or 'previous'
            frame.
        skip: Names of attentions to leave alone, as in a shell ('blocks.0.*').

    Returns:
        The model. :func:`inflated_modules` tells which of its modules were
        changed; so does the log.

    Raises:
        ValueError: If an argument is not one of these, there is no attention,
            or there is one that is not understood. The model is then
            unchanged.
    """
    if shift == 'token':
        raise ValueError("inflate has no shift='token': the block's residual "
                         'stream is out of its reach; VisionTransformerLAPS '
                         'has it')
    if not pyramid:
        raise ValueError('pyramid must have a level at least, got none')
    if inflated_modules(model):
        raise ValueError(f'{type(model).__name__} is inflated already')
    found = {
        name: module
        for name, module in _attentions(model)
        if not any(fnmatch(name, pattern) for pattern in skip)
    }
    if not found:
        raise ValueError(
            f'{type(model).__name__} has no attention to inflate; wanted are '
            'modules with qkv, proj and num_heads, as in timm and mmpretrain')
    problems = {name: _problem(module) for name, module in found.items()}
    problems = {name: why for name, why in problems.items() if why}
    if problems:
        lines = [f'  {name or "itself"} ({type(found[name]).__name__}): {why}'
                 for name, why in problems.items()]
        raise ValueError(
            f'{type(model).__name__} has attentions that inflate does not '
            'understand (skip=[...] leaves some alone):\n' + '\n'.join(lines))
    mixings = [
        FrameMixing(num_frames, attention, pyramid[i % len(pyramid)], shift,
                    shift_fraction, shift_first) for i in range(len(found))
    ]
    for module, mixing in zip(found.values(), mixings):
        module.add_module(MIXING, mixing)
        layout = _Layout(module.qkv, mixing, module.num_heads)
        module.register_forward_pre_hook(layout.join, with_kwargs=True)
        module.proj.register_forward_pre_hook(layout.part)
    print_log(
        f'inflate: {len(found)} attentions of {type(model).__name__} changed, '
        'all else is as it was\n' + '\n'.join(
            f'  {name or "itself"} ({type(found[name]).__name__}): {what}'
            for name, what in inflated_modules(model).items()), 'current')
    return model


def inflated_modules(model: nn.Module) -> dict[str, str]:
    """The attentions that :func:`inflate` changed, and how, by name."""
    return {
        name.removesuffix(MIXING).removesuffix('.'): module.extra_repr()
        for name, module in model.named_modules()
        if name.split('.')[-1] == MIXING and isinstance(module, FrameMixing)
    }


class _Layout:
    """The hooks of one attention: tokens as its projections see them."""

    def __init__(self, qkv: nn.Module, mixing: FrameMixing,
                 num_heads: int) -> None:
        self.with_conv = isinstance(qkv, nn.Conv2d)
        self.mixing = mixing
        self.num_heads = num_heads

    def join(self, module: nn.Module, args: tuple,
             kwargs: dict[str, Any]) -> tuple[tuple, dict]:
        _require_plain(module, args, kwargs)
        x, *rest = args
        # A convolution sees the second frame below the first.
        if self.with_conv:
            x = self.mixing.join(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        else:
            x = self.mixing.join(x)
        return (x, *rest), kwargs

    def part(self, module: nn.Module, args: tuple) -> Tensor:
        x, = args
        # Joined as rows, parted as rows: [B T, H, W, C] or [B T, N, C].
        if self.with_conv:
            x = self.mixing.part(x.permute(0, 2, 3, 1))
            rows, columns = x.shape[1:3]
            x = self._shift(x.flatten(1, 2)).unflatten(1, (rows, columns))
            return x.permute(0, 3, 1, 2)
        return self._shift(self.mixing.part(x))

    def _shift(self, x: Tensor) -> Tensor:
        x = x.unflatten(-1, (self.num_heads, -1))
        return self.mixing.shift_heads(x).flatten(-2)


def _attentions(model: nn.Module, name: str = '') -> list:
    """The outermost modules that are, or call themselves, attentions."""
    if hasattr(model, 'qkv') or (
            re.search('Att(n|ention)', type(model).__name__)
            and not any(hasattr(m, 'qkv') for m in model.modules())):
        return [(name, model)]
    return [
        pair for child, module in model.named_children()
        for pair in _attentions(module, f'{name}.{child}' if name else child)
    ]


def _problem(module: nn.Module) -> str | None:
    """Why this attention is not understood, or None."""
    missing = [name for name in ('qkv', 'proj', 'num_heads')
               if getattr(module, name, None) is None]
    if missing:
        return f'it has no {", ".join(missing)}'
    kinds = type(module.qkv), type(module.proj)
    if not all(issubclass(kind, nn.Linear) for kind in kinds) and not all(
            isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)
            for m in (module.qkv, module.proj)):
        return ('its qkv and proj must both be Linear or 1x1 Conv2d, got '
                f'{kinds[0].__name__} and {kinds[1].__name__}')
    own = [name for name, _ in module.named_parameters(recurse=False)]
    own += [name for name, _ in module.named_children()
            if name not in _CHILDREN]
    if own:
        return f'it has {", ".join(own)}, which may tell tokens apart'
    _, *options = inspect.signature(module.forward).parameters
    unknown = sorted(set(options) - set(_UNSET))
    if unknown:
        return f'its forward takes {", ".join(unknown)}'
    return _misbehavior(module)


@torch.no_grad()
def _misbehavior(module: nn.Module) -> str | None:
    """Try a copy of the attention on random tokens; what is wrong, or None."""
    weight = module.qkv.weight
    channels, tokens = weight.shape[1], 6
    if weight.is_meta:
        return None
    module = copy.deepcopy(module).float().cpu().eval()
    # What a fresh network multiplies its output by may be nothing.
    generator = torch.Generator().manual_seed(0)
    for p in module.parameters():
        p.normal_(std=channels**-0.5, generator=generator)
    seen = []
    module.proj.register_forward_pre_hook(
        lambda m, args: seen.append(args[0]))
    x = torch.randn(2, tokens, channels, generator=generator)
    order = torch.randperm(tokens, generator=generator)
    other = x.clone()
    other[:, -1] += 1

    def call(x: Tensor) -> Tensor:
        if isinstance(module.qkv, nn.Linear):
            return module(x)
        return module(x.mT[..., None])[..., 0].mT

    try:
        y, mixed, changed = call(x), call(x[:, order]), call(other)
    except (RuntimeError, ValueError, TypeError, IndexError,
            AssertionError) as error:
        return f'it does not take tokens [B, N, C]: {error}'
    if y.shape[:2] != x.shape[:2]:
        return 'it does not take tokens [B, N, C], however many they are'
    if len(seen) != 3 or seen[0].numel() != 2 * tokens * (
            weight.shape[0] // 3):
        return 'it does not call proj once, on the heads side by side'
    scale = y.abs().max()
    if not torch.allclose(y[:, order], mixed, atol=1e-4 * scale):
        return 'its result depends on the order of the tokens'
    if torch.allclose(y[:, 0], changed[:, 0], atol=1e-6 * scale):
        return 'its tokens do not all attend to one another'
    return None


def _require_plain(module: nn.Module, args: tuple, kwargs: dict) -> None:
    given = dict(zip(inspect.signature(module.forward).parameters, args))
    given.update(kwargs)
    for name, value in given.items():
        if name in _UNSET and value is not _UNSET[name]:
            raise ValueError(
                f'an inflated {type(module).__name__} takes no {name}')
