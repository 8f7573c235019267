# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear map of tokens."""
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import flop_registry, register_flop_formula

from . import torch_private
from .dispatch import (
    dispatched,
    is_known,
    not_eager_autograd,
    register_backend,
)
from .torch_private import HAS_ONEDNN, ONEDNN_LINEAR

# Minimum number of multiplications for which oneDNN pays off, in general and
# for a single row, which MKL multiplies in one thread.
LEAST_PRODUCTS = 2**21
LEAST_PRODUCTS_OF_ROW = 2**18


@dispatched
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``x W^T + b``, as ``torch.nn.functional.linear`` does.

    Args:
        x: [*, C].
        weight: [K, C].
        bias: [K] or None.

    Returns:
        [*, K].
    """
    return F.linear(x, weight, bias)


@torch.library.custom_op(
    'mmvidattn::onednn_linear', mutates_args=(),
    schema='(Tensor x, Tensor weight, Tensor? bias) -> Tensor')
def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute ``x W^T + b`` by oneDNN, which torch calls in bfloat16 only.

    In float32 torch calls MKL, which is slower on some processors.
    """
    return torch_private.onednn_linear(x, weight, bias)


@onednn_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x.new_empty(*x.shape[:-1], len(weight))


@torch.library.custom_op('mmvidattn::onednn_sum_of_products', mutates_args=())
def onednn_sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    """Compute ``x^T y`` of [N, C] and [N, K], the gradient of a weight.

    This is a separate operator because torch.compile would copy transposed
    tensors.
    """
    # oneDNN is slow where many rows are summed to few channels.
    if len(x) > 16 * max(x.shape[1], y.shape[1]):
        return x.t() @ y
    return torch_private.onednn_linear(x.t(), y.t(), None)


@onednn_sum_of_products.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty(x.shape[1], y.shape[1])


def _keep_inputs(ctx, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _linear_gradients(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    x_grad = weight_grad = bias_grad = None
    rows = grad.flatten(0, -2)
    if ctx.needs_input_grad[0]:
        x_grad = onednn_linear(grad, weight.t(), None)
    if ctx.needs_input_grad[1]:
        weight_grad = onednn_sum_of_products(rows, x.flatten(0, -2))
    if ctx.needs_input_grad[2]:
        bias_grad = rows.sum(0)
    return x_grad, weight_grad, bias_grad


def _sum_gradients(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = ctx.saved_tensors
    return onednn_linear(y, grad, None), onednn_linear(x, grad.t(), None)


onednn_linear.register_autograd(
    _linear_gradients, setup_context=_keep_inputs)
onednn_sum_of_products.register_autograd(
    _sum_gradients, setup_context=_keep_inputs)


@register_flop_formula(torch.ops.mmvidattn.onednn_sum_of_products)
def _sum_flops(x_shape: torch.Size, y_shape: torch.Size, *args,
               out_shape: torch.Size | None = None, **kwargs) -> int:
    return 2 * x_shape.numel() * y_shape[1]


def _onednn_flops(x_shape: torch.Size, weight_shape: torch.Size, *args,
                  out_shape: torch.Size | None = None, **kwargs) -> int:
    return 2 * x_shape.numel() * weight_shape[0]


for operator in torch.ops.mmvidattn.onednn_linear, ONEDNN_LINEAR:
    if operator is not None and operator not in flop_registry:
        register_flop_formula(operator)(_onednn_flops)


def _by_onednn(x: Tensor, weight: Tensor,
               bias: Tensor | None = None) -> Tensor:
    # Call the function directly, because the call of a torch.library operator
    # takes as long as a small product.
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return onednn_linear(x, weight, bias)
    return torch_private.onednn_linear(x, weight, bias)


def _why_not_onednn(x: Tensor, weight: Tensor,
                    bias: Tensor | None = None) -> str | None:
    if not HAS_ONEDNN:
        return 'this torch has no oneDNN'
    # Check this first, because reading a size makes it constant in an export.
    reason = not_eager_autograd()
    if reason:
        return reason
    if x.device.type != 'cpu':
        return 'not on a CPU'
    if not x.dtype == weight.dtype == torch.float32 or \
            torch.is_autocast_enabled('cpu'):
        return 'not in float32'
    least = LEAST_PRODUCTS_OF_ROW if is_known(
        x.numel() <= x.shape[-1]) else LEAST_PRODUCTS
    if is_known(x.numel() * len(weight) < least):
        return 'the product is too small'
    return None


register_backend(
    linear,
    'oneDNN',
    _by_onednn,
    _why_not_onednn,
    where='CPU, float32')
