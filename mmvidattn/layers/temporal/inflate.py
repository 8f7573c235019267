# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Leap attention and periodic shift for an existing image network."""
import copy
import inspect
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from ..video_transformer_block import attention_of_layers
from .frame_mixing import FrameMixing, Reach

MIXING = 'frame_mixing'
# Known children of attentions; they process each token separately.
_CHILDREN = {
    'qkv', 'q_norm', 'k_norm', 'attn_drop', 'norm', 'gate', 'proj',
    'proj_drop', 'out_drop', 'gamma1'
}
# Optional arguments of forward in timm, with the values that have no effect.
_UNSET = dict(attn_mask=None, is_causal=False)


def inflate(model: nn.Module,
            num_frames: int,
            pyramid: Sequence[int] = (1, 2, 3),
            shift: str = 'periodic',
            attention: str | Sequence[str] | dict = 'leap',
            shift_fraction: float = 0.25,
            shift_first: str = 'next',
            skip: Sequence[str] = ()) -> nn.Module:
    """Turn an image transformer into a video transformer, in place.

    This adds the leap attention and the periodic shift of `Long-term Leap
    Attention, Short-term Periodic Shift for Video Classification
    <https://arxiv.org/abs/2207.05526>`_ to a network. The network still takes
    images [B T, C, H, W], which now must be the T consecutive frames of each
    clip, and returns one output for each image. Parameters and the keys of the
    state dict do not change.

    The function adds hooks to each attention. Before the attention, a hook
    joins the tokens of frames that attend to each other into one sequence.
    Before the output projection, another hook separates the frames again and
    shifts channels. This works for any attention that does not depend on the
    order of its tokens and calls its projection ``proj`` once, such as the
    self-attentions of timm (``Attention`` with linear layers, Visformer's with
    1x1 convolutions) and mmpretrain (``MultiheadAttention``). Each attention
    is first tested with random tokens.

    Args:
        model: Image network.
        num_frames: Clip length T.
        pyramid: Levels R of leap attention, repeated over the attentions in
            the order of ``model.modules()``. Defaults to (1, 2, 3).
        shift: 'none', 'plain' or 'periodic'. Defaults to 'periodic'.
        attention: '2d', '3d' or 'leap', for all attentions or for each, see
            :func:`attention_of_layers`. Defaults to 'leap'.
        shift_fraction, shift_first: See :class:`FrameMixing`.
        skip: Names of attentions to skip, with shell wildcards
            ('blocks.0.*'). Defaults to none.

    Returns:
        The model. :func:`inflated_modules` and the log list the changed
        modules.

    Raises:
        ValueError: If an argument is not allowed, or there is no attention or
            an unsupported one. The model is then unchanged.
    """
    # 1. Find the attentions.
    if shift == 'token':
        raise ValueError("shift='token' is not supported by inflate, which "
                         'cannot reach the residual stream of a block; use '
                         'VisionTransformerLAPS')
    if not pyramid:
        raise ValueError('pyramid must have at least one level, got none')
    if inflated_modules(model):
        raise ValueError(f'{type(model).__name__} is already inflated')
    layers = {
        name: module
        for name, module in _attentions(model)
        if not any(fnmatch(name, pattern) for pattern in skip)
    }
    if not layers:
        raise ValueError(
            f'{type(model).__name__} has no attention to inflate; expected '
            'modules with qkv, proj and num_heads, as in timm and mmpretrain')

    # 2. Check all of them before the first change.
    problems = {name: _problem(module) for name, module in layers.items()}
    problems = {name: why for name, why in problems.items() if why}
    if problems:
        lines = [f'  {name or "itself"} ({type(layers[name]).__name__}): {why}'
                 for name, why in problems.items()]
        raise ValueError(
            f'{type(model).__name__} has attentions that inflate does not '
            'support; pass skip=[...] to skip them:\n' + '\n'.join(lines))

    # 3. Add the hooks.
    mixings = [
        FrameMixing(num_frames, reach, pyramid[i % len(pyramid)], shift,
                    shift_fraction, shift_first)
        for i, reach in enumerate(
            attention_of_layers(attention, len(layers), Reach))
    ]
    for module, mixing in zip(layers.values(), mixings):
        module.add_module(MIXING, mixing)
        layout = _Layout(module.qkv, mixing, module.num_heads)
        module.register_forward_pre_hook(layout.join, with_kwargs=True)
        module.proj.register_forward_pre_hook(layout.part)
    print_log(
        f'inflate: changed {len(layers)} attentions of '
        f'{type(model).__name__}\n'
        + '\n'.join(
            f'  {name or "itself"} ({type(layers[name]).__name__}): {change}'
            for name, change in inflated_modules(model).items()), 'current')
    return model


def inflated_modules(model: nn.Module) -> dict[str, str]:
    """Describe the changes of :func:`inflate` by the attention's name."""
    return {
        name.removesuffix(MIXING).removesuffix('.'): module.extra_repr()
        for name, module in model.named_modules()
        if name.split('.')[-1] == MIXING and isinstance(module, FrameMixing)
    }


class _Layout:
    """Hooks of one attention."""

    def __init__(self, qkv: nn.Module, mixing: FrameMixing,
                 num_heads: int) -> None:
        self.with_conv = isinstance(qkv, nn.Conv2d)
        self.mixing = mixing
        self.num_heads = num_heads

    def join(self, module: nn.Module, args: tuple,
             kwargs: dict[str, Any]) -> tuple[tuple, dict]:
        names = inspect.signature(module.forward).parameters
        for name, value in (*zip(names, args), *kwargs.items()):
            if name in _UNSET and value is not _UNSET[name]:
                raise ValueError(
                    f'{name} is not supported by an inflated '
                    f'{type(module).__name__}, got {value!r}')
        x, *rest = args
        # For a convolution, stack the frames vertically.
        if self.with_conv:
            x = self.mixing.join(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        else:
            x = self.mixing.join(x)
        return (x, *rest), kwargs

    def part(self, module: nn.Module, args: tuple) -> Tensor:
        x, = args
        if self.with_conv:
            x = x.permute(0, 2, 3, 1)
        x = self.mixing.part(x).unflatten(-1, (self.num_heads, -1))
        x = self.mixing.shift_heads(x).flatten(-2)
        return x.permute(0, 3, 1, 2) if self.with_conv else x


def _attentions(model: nn.Module, name: str = '') -> list:
    """Find the outermost modules that have qkv or are named attention."""
    if hasattr(model, 'qkv') or (
            re.search('Att(n|ention)', type(model).__name__)
            and not any(hasattr(m, 'qkv') for m in model.modules())):
        return [(name, model)]
    return [
        pair for child, module in model.named_children()
        for pair in _attentions(module, f'{name}.{child}' if name else child)
    ]


def _problem(module: nn.Module) -> str | None:
    """Return why this attention is not supported, or None."""
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
    extra = [name for name, _ in module.named_parameters(recurse=False)]
    extra += [name for name, _ in module.named_children()
              if name not in _CHILDREN]
    if extra:
        return (f'it has {", ".join(extra)}, which may depend on the position '
                'of a token')
    _, *options = inspect.signature(module.forward).parameters
    unknown = sorted(set(options) - set(_UNSET))
    if unknown:
        return f'its forward takes {", ".join(unknown)}'
    return _misbehavior(module)


@torch.no_grad()
def _misbehavior(module: nn.Module) -> str | None:
    """Test a copy of the attention with random tokens, as :func:`_problem`."""
    weight = module.qkv.weight
    channels, tokens = weight.shape[1], 6
    if weight.is_meta:
        return None
    module = copy.deepcopy(module).float().cpu().eval()
    # Use random parameters, because a new network may scale its outputs by
    # zero.
    generator = torch.Generator().manual_seed(0)
    for p in module.parameters():
        p.normal_(std=channels**-0.5, generator=generator)
    seen = []
    module.proj.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
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
        return 'it does not take tokens [B, N, C] for any N'
    if len(seen) != 3 or seen[0].numel() != 2 * tokens * (
            weight.shape[0] // 3):
        return 'it does not call proj once, on the concatenated heads'
    scale = y.abs().max()
    if not torch.allclose(y[:, order], mixed, atol=1e-4 * scale):
        return 'its result depends on the order of the tokens'
    if torch.allclose(y[:, 0], changed[:, 0], atol=1e-6 * scale):
        return 'its tokens do not all attend to each other'
    return None
