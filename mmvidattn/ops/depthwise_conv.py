# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Depth-wise convolution of video tokens, channels last."""
import torch.nn.functional as F
from torch import Tensor

from .dispatch import dispatched, not_cpu_training, register_backend
from .precision import computes_in_bfloat16_on_cpu


@dispatched
def depthwise_conv(x: Tensor,
                   weight: Tensor,
                   bias: Tensor | None = None) -> Tensor:
    """Convolve each channel of a grid of tokens, with zero padding.

    Args:
        x: Tokens, [B, T, H, W, C].
        weight: [C, 1, kt, kh, kw], odd sizes.
        bias: [C] or None.

    Returns:
        [B, T, H, W, C].

    Raises:
        ValueError: If a kernel size is even or the channels differ.
    """
    if not _is_valid(x, weight):
        raise ValueError(
            'depthwise_conv takes tokens [B, T, H, W, C] and a kernel [C, 1, '
            f'kt, kh, kw] of odd sizes, got {tuple(x.shape)} and '
            f'{tuple(weight.shape)}')
    padding = tuple(k // 2 for k in weight.shape[2:])
    clips = x.movedim(-1, 1)
    if computes_in_bfloat16_on_cpu(x):
        # For channels-last clips with few frames, torch's weight gradient is
        # wrong, and may contain uninitialized memory (seen in torch 2.13).
        clips = clips.contiguous()
    y = F.conv3d(clips, weight, bias, padding=padding, groups=len(weight))
    return y.movedim(1, -1)


def _by_frames(x: Tensor,
               weight: Tensor,
               bias: Tensor | None = None) -> Tensor:
    """Convolve in 2D with each frame of the kernel, and add the results.

    On a CPU, torch's depth-wise 3D convolution has a slow backward pass. The
    2D convolution has a fast one and reads channels-last tokens in place.
    """
    size, num_frames = weight.shape[2], x.shape[1]
    y = _convolve_frames(x, weight[:, :, size // 2], bias)
    for k in range(size):
        shift = k - size // 2
        if not 0 < abs(shift) < num_frames:
            continue
        target = slice(max(-shift, 0), num_frames - max(shift, 0))
        source = slice(max(shift, 0), num_frames - max(-shift, 0))
        y[:, target] += _convolve_frames(
            x[:, source], weight[:, :, k], None)
    return y


def _convolve_frames(x: Tensor, weight: Tensor,
                     bias: Tensor | None) -> Tensor:
    """Convolve [B, T, H, W, C] frame by frame with [C, 1, kh, kw]."""
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
    where='CPU, training')
