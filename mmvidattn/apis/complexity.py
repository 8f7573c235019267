# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count the operations of a forward pass."""
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from ..ops.torch_private import TorchDispatchMode

aten = torch.ops.aten


def _attention_macs(q: Tensor, k: Tensor, v: Tensor, *args, **kwargs) -> int:
    """[B, G, N, D], [B, G, M, D], [B, G, M, E]."""
    return q.shape[:-1].numel() * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _per_output(cost: int) -> Callable[..., int]:
    return lambda out, *args, **kwargs: cost * out.numel()


def _per_input(cost: int) -> Callable[..., int]:
    return lambda out, x, *args, **kwargs: cost * x.numel()


def _pool_cost(out: Tensor, x: Tensor, kernel_size, *args, **kwargs) -> int:
    return out.numel() * math.prod(kernel_size)


def _sort_cost(out: Tensor, x: Tensor, dim: int = -1, *args,
               **kwargs) -> int:
    return x.numel() * math.ceil(math.log2(max(x.shape[dim], 1)))


# Multiply-accumulates of operators without a formula in torch.
_MACS = {aten._scaled_dot_product_flash_attention_for_cpu: _attention_macs}
# Formulas for operators that are not pointwise. They compute the number of
# operations from the (first) result and the inputs.
_ELEMENTWISE = {
    # Count 5 per value: for a norm like fvcore, and for softmax as maximum,
    # difference, exponential, sum and division.
    **dict.fromkeys((aten.native_layer_norm, aten.native_group_norm,
                     aten.native_batch_norm, aten._softmax,
                     aten._log_softmax), _per_output(5)),
    aten.logsumexp: _per_input(4),
    # A product and a sum.
    aten.linalg_vector_norm: _per_input(2),
    # Difference, product and sum.
    aten.var: _per_input(3),
    # One sum, product or comparison per element; finding the k largest takes
    # at least as many operations.
    **dict.fromkeys((aten.sum, aten.mean, aten.amax, aten.amin, aten.max,
                     aten.min, aten.argmax, aten.argmin, aten.any, aten.all,
                     aten.cumsum, aten.prod, aten.topk,
                     aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d),
                    _per_input(1)),
    aten.sort: _sort_cost,
    **dict.fromkeys((aten.avg_pool2d, aten.avg_pool3d,
                     aten.max_pool2d_with_indices), _pool_cost),
    # A product and a sum for each neighbor.
    aten.upsample_linear1d: _per_output(4),
    aten.upsample_bilinear2d: _per_output(8),
    aten.upsample_bicubic2d: _per_output(32),
    aten.floor_divide: _per_output(1),
}
# Softmax of masked attention in torch 2.5 and later.
if hasattr(aten, '_safe_softmax'):
    _ELEMENTWISE[aten._safe_softmax] = _ELEMENTWISE[aten._softmax]
# Operators that only move, create or look up numbers.
_FREE = {
    aten.clone, aten._to_copy, aten.copy_, aten.cat, aten.stack, aten.empty,
    aten.empty_like, aten.empty_strided, aten.zeros, aten.zeros_like,
    aten.ones, aten.ones_like, aten.new_ones, aten.new_zeros, aten.new_empty,
    aten.full, aten.full_like, aten.arange, aten.triu, aten.fill_, aten.zero_,
    aten.constant_pad_nd, aten.index, aten.index_select, aten.gather,
    aten.unsafe_split, aten.transpose_,
    aten.roll, aten.flip, aten.scalar_tensor, aten.eye, aten._unsafe_view,
    aten.repeat, aten.detach, aten.lift_fresh, aten.embedding,
    aten.native_dropout, aten.scatter, aten.scatter_,
    aten.as_strided_
}


@dataclass
class Complexity:
    """Cost of one forward pass.

    Attributes:
        params: Number of parameters.
        macs: Multiply-accumulates of matrix products and convolutions, which
            papers call "FLOPs".
        elementwise: All other operations: sums, activations, norms.
        uncounted: Number of calls of each operator without a formula.
    """
    params: int = 0
    macs: int = 0
    elementwise: int = 0
    uncounted: Counter = field(default_factory=Counter)

    @property
    def flops(self) -> int:
        """Floating-point operations: two per multiply-accumulate."""
        return 2 * self.macs + self.elementwise


class _Count(TorchDispatchMode):

    def __init__(self) -> None:
        super().__init__()
        self.result = Complexity()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        op = func.overloadpacket
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        numel = first.numel() if isinstance(first, Tensor) else 0
        if op in _MACS:
            self.result.macs += _MACS[op](*args, **kwargs)
        elif op in flop_registry:
            self.result.macs += flop_registry[op](
                *args, **kwargs, out_val=out) // 2
        elif func.is_view or op in _FREE or not numel:
            pass
        elif op in _ELEMENTWISE:
            self.result.elementwise += _ELEMENTWISE[op](first, *args, **kwargs)
        elif torch.Tag.pointwise in func.tags:
            self.result.elementwise += numel
        else:
            self.result.uncounted[str(op)] += 1
        return out


def count_complexity(model: nn.Module, *inputs: Tensor,
                     **kwargs) -> Complexity:
    """Count the parameters and operations of ``model(*inputs, **kwargs)``.

    Fused attention counts as two matrix products. On the meta device, nothing
    is computed and no memory is needed.

    Args:
        model: Any module; it is put into eval mode.
        *inputs: Inputs of the model, on its device.
        **kwargs: Keyword arguments of the model.
    """
    with torch.no_grad(), _Count() as count:
        model.eval()(*inputs, **kwargs)
    count.result.params = sum(p.numel() for p in model.parameters())
    return count.result
