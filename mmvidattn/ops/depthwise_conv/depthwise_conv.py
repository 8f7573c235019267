# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A depth-wise convolution of video tokens, channels last."""
import torch.nn.functional as F
from torch import Tensor

from ..eager import is_eager_on_cpu
from ..kernel_frames import kernel_frames
from .naive import naive_depthwise_conv


def depthwise_conv(x: Tensor,
                   weight: Tensor,
                   bias: Tensor | None = None) -> Tensor:
    """Convolve each channel of a grid of tokens; zeros around the grid.

    oneDNN, which torch calls on a CPU, has no fast depth-wise convolution of
    volumes, but one of images, which moreover takes tokens as they lie in
    memory. So there the sum over the frames of the kernel is taken here.

    Args:
        x: Tokens, [B, T, H, W, C].
        weight: [C, 1, kt, kh, kw], odd sizes.
        bias: [C] or None.

    Returns:
        [B, T, H, W, C].

    Raises:
        ValueError: If a size of the kernel is even or the channels differ.
    """
    if x.dim() != 5 or weight.shape[:2] != (x.shape[-1], 1) or any(
            k % 2 == 0 for k in weight.shape[2:]):
        raise ValueError(
            'depthwise_conv takes tokens [B, T, H, W, C] and a kernel [C, 1, '
            f'kt, kh, kw] of odd sizes, got {tuple(x.shape)} and '
            f'{tuple(weight.shape)}')
    if not is_eager_on_cpu(x):
        return naive_depthwise_conv(x, weight, bias)
    size = weight.shape[2]
    y = _of_frames(x, weight[:, :, size // 2], bias)
    for k, to, of in kernel_frames(size, x.shape[1]):
        y[:, to] += _of_frames(x[:, of], weight[:, :, k], None)
    return y


def _of_frames(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Each frame alone: [B, T, H, W, C] with [C, 1, kh, kw]."""
    B, T = x.shape[:2]
    padding = tuple(k // 2 for k in weight.shape[2:])
    y = F.conv2d(
        x.flatten(0, 1).permute(0, 3, 1, 2),
        weight,
        bias,
        padding=padding,
        groups=len(weight))
    return y.permute(0, 2, 3, 1).unflatten(0, (B, T))
