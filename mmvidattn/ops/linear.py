# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A linear map of tokens."""
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
from .processor import IS_AMD
from .torch_private import HAS_ONEDNN, ONEDNN_LINEAR

# Multiplications from which the backends below outweigh their call; the same
# of one row, which MKL multiplies in one thread; and rows up to which copying
# the weight takes as long as they do.
LEAST_PRODUCTS = 2**21
LEAST_PRODUCTS_OF_ROW = 2**18
MOST_ROWS = 64


@dispatched
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x W^T + b``, as ``torch.nn.functional.linear``.

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
    """``x W^T + b`` by oneDNN, which torch itself calls in bfloat16 only.

    On AMD's processors MKL, torch's library for float32, takes twice as long.
    """
    return torch_private.onednn_linear(x, weight, bias)


@onednn_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x.new_empty(*x.shape[:-1], len(weight))


@torch.library.custom_op('mmvidattn::onednn_sum_of_products', mutates_args=())
def onednn_sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    """``x^T y`` of tokens [N, C] and [N, K], the gradient of a weight.

    An operator of its own as torch.compile would copy what is transposed.
    """
    # oneDNN is slow at sums of many rows to few channels.
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
    of_x = of_weight = of_bias = None
    rows = grad.flatten(0, -2)
    if ctx.needs_input_grad[0]:
        of_x = onednn_linear(grad, weight.t(), None)
    if ctx.needs_input_grad[1]:
        of_weight = onednn_sum_of_products(rows, x.flatten(0, -2))
    if ctx.needs_input_grad[2]:
        of_bias = rows.sum(0)
    return of_x, of_weight, of_bias


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
    # Calling an operator of torch.library takes as long as a small product.
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return onednn_linear(x, weight, bias)
    return torch_private.onednn_linear(x, weight, bias)


def _why_not_onednn(x: Tensor, weight: Tensor,
                    bias: Tensor | None = None) -> str | None:
    if not (HAS_ONEDNN and IS_AMD):
        return 'no oneDNN, or no processor of AMD'
    reason = _why_not_float32(x, weight)
    if reason:
        return reason
    least = LEAST_PRODUCTS_OF_ROW if is_known(
        x.numel() <= x.shape[-1]) else LEAST_PRODUCTS
    if is_known(x.numel() * len(weight) < least):
        return 'too little to do'
    return None


def _why_not_float32(x: Tensor, weight: Tensor) -> str | None:
    """Reason not to leave torch's own linear function, or None."""
    reason = not_eager_autograd()
    if reason:
        return reason
    if x.device.type != 'cpu':
        return 'not on a CPU'
    if not x.dtype == weight.dtype == torch.float32 or \
            torch.is_autocast_enabled('cpu'):
        return 'not in float32'
    return None


def _of_columns(x: Tensor, weight: Tensor,
                bias: Tensor | None = None) -> Tensor:
    """``(W x^T + b)^T``.

    MKL copies the weight of ``x W^T`` into an order of its own in each call,
    which with few rows takes as long as the product. It need not for
    ``W x^T``.
    """
    columns = x.reshape(-1, x.shape[-1]).t()
    y = weight @ columns if bias is None else torch.addmm(
        bias[:, None], weight, columns)
    return y.t().reshape(*x.shape[:-1], len(weight))


def _why_not_of_columns(x: Tensor, weight: Tensor,
                        bias: Tensor | None = None) -> str | None:
    reason = _why_not_float32(x, weight)
    if reason:
        return reason
    if torch.is_grad_enabled():
        return 'with gradients'
    rows = x.numel() // x.shape[-1]
    if not (is_known(rows > 1) and is_known(rows <= MOST_ROWS)):
        return 'one row, or too many'
    return None


register_backend(
    linear,
    'oneDNN',
    _by_onednn,
    _why_not_onednn,
    where='CPU of AMD, float32',
    gain='1.3 to 2.2')
register_backend(
    linear,
    'columns',
    _of_columns,
    _why_not_of_columns,
    where=f'CPU, inference in float32, 2 to {MOST_ROWS} rows',
    gain='1.0 to 1.3')
