# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Depth-wise convolution of video tokens, channels last."""
import torch
import torch.nn.functional as F
from torch import Tensor

from .precision import needs_gradients


def depthwise_conv(x: Tensor, weight: Tensor,
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
    if not (x.dim() == 5 and weight.shape[:2] == (x.shape[-1], 1)
            and all(k % 2 for k in weight.shape[2:])):
        raise ValueError(
            'depthwise_conv takes tokens [B, T, H, W, C] and a kernel [C, 1, '
            f'kt, kh, kw] of odd sizes, got {tuple(x.shape)} and '
            f'{tuple(weight.shape)}')
    # On a CPU, the backward pass of torch's depth-wise 3D convolution is slow.
    # Measured on AMD and Intel CPUs, training frame by frame is 2.1 to 2.9
    # times as fast, and compiled 3.8 to 6 times.
    if x.device.type == 'cpu' and needs_gradients(x, weight):
        return _by_frames(x, weight, bias)
    if weight.shape[2] == 1:
        return _convolve_frames(x, weight[:, :, 0], bias)
    return naive_depthwise_conv(x, weight, bias)


def naive_depthwise_conv(x: Tensor, weight: Tensor,
                         bias: Tensor | None = None) -> Tensor:
    """Reference of :func:`depthwise_conv`: one 3D convolution."""
    y = F.conv3d(x.movedim(-1, 1), weight, bias, groups=len(weight),
                 padding=[k // 2 for k in weight.shape[2:]])
    return y.movedim(1, -1)


def _by_frames(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve in 2D with each frame of the kernel, and add the results.

    The 2D convolution has a fast backward pass, and reads channels-last tokens
    in place.
    """
    size, num_frames = weight.shape[2], x.shape[1]
    convolve = frame_conv if (
        torch.compiler.is_compiling()
        and x.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled('cpu')) else _convolve_frames
    y = convolve(x, weight[:, :, size // 2], bias)
    for k in range(size):
        shift = k - size // 2
        if not 0 < abs(shift) < num_frames:
            continue
        target = slice(max(-shift, 0), num_frames - max(shift, 0))
        source = slice(max(shift, 0), num_frames - max(-shift, 0))
        y[:, target] += convolve(x[:, source], weight[:, :, k], None)
    return y


def _convolve_frames(x: Tensor, weight: Tensor,
                     bias: Tensor | None) -> Tensor:
    """Convolve [B, T, H, W, C] frame by frame with [C, 1, kh, kw]."""
    y = F.conv2d(_images(x), weight, bias, padding=_padding(weight),
                 groups=len(weight))
    return y.permute(0, 2, 3, 1).unflatten(0, x.shape[:2])


def _images(x: Tensor) -> Tensor:
    """View tokens [B, T, H, W, C] as images [B T, C, H, W], channels last."""
    return x.flatten(0, 1).permute(0, 3, 1, 2)


def _padding(weight: Tensor) -> list[int]:
    return [k // 2 for k in weight.shape[2:]]


@torch.library.custom_op('mmvidattn::frame_conv', mutates_args=())
def frame_conv(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve [B, T, H, W, C] frame by frame with [C, 1, kh, kw].

    Without this operator, torch.compile would convert the tokens to
    channels-first images, which takes longer than the convolution.
    """
    return _convolve_frames(x, weight, bias).contiguous()


@frame_conv.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.custom_op('mmvidattn::frame_conv_gradients', mutates_args=())
def frame_conv_gradients(grad: Tensor, x: Tensor,
                         weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of tokens, weight and bias of ``frame_conv``."""
    x_grad, weight_grad, bias_grad = torch.ops.aten.convolution_backward(
        _images(grad.contiguous()), _images(x), weight, [len(weight)], [1, 1],
        _padding(weight), [1, 1], False, [0, 0], len(weight),
        [True, True, True])
    x_grad = x_grad.permute(0, 2, 3, 1).reshape(x.shape)
    return x_grad.contiguous(), weight_grad.contiguous(), bias_grad


@frame_conv_gradients.register_fake
def _(grad: Tensor, x: Tensor,
      weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return (x.new_empty(x.shape), weight.new_empty(weight.shape),
            weight.new_empty(len(weight)))


def _keep_inputs(ctx, inputs: tuple, output: Tensor) -> None:
    x, weight, bias = inputs
    ctx.save_for_backward(x, weight)
    ctx.has_bias = bias is not None


def _frame_conv_gradients(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
    x_grad, weight_grad, bias_grad = frame_conv_gradients(
        grad, *ctx.saved_tensors)
    return x_grad, weight_grad, bias_grad if ctx.has_bias else None


frame_conv.register_autograd(_frame_conv_gradients, setup_context=_keep_inputs)
