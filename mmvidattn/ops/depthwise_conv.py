# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A depth-wise convolution of video tokens, channels last."""
from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor

from .dispatch import dispatched, not_cpu_training, register_backend


@dispatched
def depthwise_conv(x: Tensor,
                   weight: Tensor,
                   bias: Tensor | None = None) -> Tensor:
    """Convolve each channel of a grid of tokens; zeros around the grid.

    Args:
        x: Tokens, [B, T, H, W, C].
        weight: [C, 1, kt, kh, kw], odd sizes.
        bias: [C] or None.

    Returns:
        [B, T, H, W, C].

    Raises:
        ValueError: If a size of the kernel is even or the channels differ.
    """
    if not _is_valid(x, weight):
        raise ValueError(
            'depthwise_conv takes tokens [B, T, H, W, C] and a kernel [C, 1, '
            f'kt, kh, kw] of odd sizes, got {tuple(x.shape)} and '
            f'{tuple(weight.shape)}')
    padding = tuple(k // 2 for k in weight.shape[2:])
    y = F.conv3d(
        x.movedim(-1, 1), weight, bias, padding=padding, groups=len(weight))
    return y.movedim(1, -1)


def _by_frames(x: Tensor,
               weight: Tensor,
               bias: Tensor | None = None) -> Tensor:
    """Sum over the frames of the kernel what each of them gives.

    torch's depth-wise convolution of volumes has a slow backward pass on a
    CPU; that of images has a fast one, and takes tokens as they lie in memory.
    """
    size = weight.shape[2]
    y = _of_frames(x, weight[:, :, size // 2], bias)
    for k, to, source in kernel_frames(size, x.shape[1]):
        y[:, to] += _of_frames(x[:, source], weight[:, :, k], None)
    return y


def kernel_frames(size: int,
                  num_frames: int) -> Iterator[tuple[int, slice, slice]]:
    """Pair frames of a clip that a kernel's frames connect, but its middle.

    Args:
        size: Frames of the kernel, odd; there are zeros around the clip.
        num_frames: Frames of the clip.

    Yields:
        The frame of the kernel, the frames of the result that it adds to,
        and those of the clip that it reads for them.
    """
    for k in range(size):
        shift = k - size // 2
        if 0 < abs(shift) < num_frames:
            yield (k, slice(max(-shift, 0), num_frames - max(shift, 0)),
                   slice(max(shift, 0), num_frames - max(-shift, 0)))


def _of_frames(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Each frame alone: [B, T, H, W, C] with [C, 1, kh, kw]."""
    padding = tuple(k // 2 for k in weight.shape[2:])
    y = F.conv2d(
        x.flatten(0, 1).permute(0, 3, 1, 2),
        weight,
        bias,
        padding=padding,
        groups=len(weight))
    return y.permute(0, 2, 3, 1).unflatten(0, x.shape[:2])


def _is_valid(x: Tensor, weight: Tensor) -> bool:
    return (x.dim() == 5 and weight.shape[:2] == (x.shape[-1], 1)
            and all(k % 2 for k in weight.shape[2:]))


def _why_not_by_frames(x: Tensor,
                       weight: Tensor,
                       bias: Tensor | None = None) -> str | None:
    if not _is_valid(x, weight):
        return 'wrong shapes'
    return not_cpu_training(x, weight)


register_backend(
    depthwise_conv,
    'frame by frame',
    _by_frames,
    _why_not_by_frames,
    where='CPU, training',
    gain='6 to 13')
