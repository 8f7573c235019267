# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convolution of patches that do not overlap (stride = kernel size)."""
import torch.nn.functional as F
from torch import Tensor

from .precision import needs_gradients
from .sizes import is_any_size, num_blocks

Size = tuple[int, int, int]


def fit_patches(x: Tensor, kernel: Size, keep_rest: bool = True) -> Tensor:
    """Pad or crop a grid of tokens to whole patches.

    Args:
        x: Tokens, [B, T, H, W, C].
        kernel: Frames, rows and columns of a patch.
        keep_rest: Pad an incomplete patch at the end of an axis with zeros.
            If False, crop it, as a convolution does, unless it is the only
            patch of the axis. Defaults to True.

    Returns:
        [B, T', H', W', C].
    """
    pad = []
    for axis, size in enumerate(kernel, 1):
        n = x.shape[axis]
        extra = num_blocks(n, size) * size - n
        # An axis of symbolic size has at least one whole patch.
        if not keep_rest and (is_any_size(n) or extra and n > size):
            x = x.narrow(axis, 0, n // size * size)
            extra = 0
        pad = [0, extra, *pad]
    if any(map(is_any_size, pad)) or any(pad):
        x = F.pad(x, (0, 0, *pad))
    return x


def patch_conv(x: Tensor, weight: Tensor,
               bias: Tensor | None = None) -> Tensor:
    """Convolve a grid of tokens with stride = kernel size.

    Args:
        x: Tokens, [B, T, H, W, C].
        weight: [K, C, kt, kh, kw], or [C, 1, kt, kh, kw] for a depth-wise
            convolution.
        bias: [K] or None.

    Returns:
        [B, T // kt, H // kh, W // kw, K]; incomplete patches are skipped.

    Raises:
        ValueError: If the grid is smaller than the kernel or the channels
            differ.
    """
    if (x.dim() != 5 or weight.shape[1] != x.shape[-1]
            and not _is_by_channel(x, weight)
            or any(n < k for n, k in zip(x.shape[1:4], weight.shape[2:]))):
        raise ValueError(
            'patch_conv takes tokens [B, T, H, W, C] and a kernel '
            '[K, C, kt, kh, kw] or [C, 1, kt, kh, kw] no larger than the '
            f'grid, got {tuple(x.shape)} and {tuple(weight.shape)}')
    # On a CPU, the backward pass of torch's 3D convolution is slow. Measured
    # on AMD and Intel CPUs, training by a product is 1.15 to 2.5 times as fast
    # (1.3 to 2.5 times compiled); inference would be up to ten times slower.
    if x.device.type == 'cpu' and needs_gradients(x, weight):
        return _by_product(x, weight, bias)
    return naive_patch_conv(x, weight, bias)


def naive_patch_conv(x: Tensor, weight: Tensor,
                     bias: Tensor | None = None) -> Tensor:
    """Reference of :func:`patch_conv`: a strided 3D convolution."""
    y = F.conv3d(
        x.movedim(-1, 1), weight, bias, stride=weight.shape[2:],
        groups=x.shape[-1] // weight.shape[1])
    return y.movedim(1, -1)


def _by_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Reshape to patches and multiply."""
    kernel = t, h, w = tuple(weight.shape[2:])
    x = fit_patches(x, kernel, keep_rest=False)
    x = x.unflatten(3, (-1, w)).unflatten(2, (-1, h)).unflatten(1, (-1, t))
    if _is_by_channel(x, weight):
        # [t, 1, h, 1, w, C]
        weight = weight[:, 0].permute(1, 2, 3, 0)[:, None, :, None]
        y = (x * weight).sum((2, 4, 6))
        return y if bias is None else y + bias
    if x.stride(-1) == 1:
        x = x.permute(0, 1, 3, 5, 2, 4, 6, 7)
        weight = weight.permute(0, 2, 3, 4, 1)
    else:
        # Clips are [B, C, T, H, W] in memory: keep their columns last.
        x = x.permute(0, 1, 3, 5, 7, 2, 4, 6)
    return F.linear(x.flatten(4), weight.flatten(1), bias)


def _is_by_channel(x: Tensor, weight: Tensor) -> bool:
    return weight.shape[:2] == (x.shape[-1], 1) and x.shape[-1] > 1
