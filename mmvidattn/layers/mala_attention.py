# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import feature_map, mala_attention
from ..ops.linear_attention import Order
from ..utils.arguments import Count, Positive, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class MALAAttention(BaseAttention):
    """Magnitude-aware linear attention, `MALA
    <https://arxiv.org/abs/2507.00698>`_.

    Linear attention with ELU + 1 that concentrates on fewer keys if a query
    is large. It has no parameters.

    Differs from the released code, whose block has three more parts: rotary
    positions of queries and keys, a depth-wise convolution of the values, and
    a linear map of the token that multiplies the result.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        order: See :func:`mmvidattn.ops.linear_attention`. Defaults to 'auto'.
        eps: Added to the denominator. Defaults to 1e-6.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 order: Order = 'auto',
                 eps: Positive = 1e-6) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.order = order
        self.eps = eps

    def feature_map(self, x: Tensor) -> Tensor:
        return feature_map(x, 'elu+1')

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return mala_attention(q, k, v, order=self.order, eps=self.eps)

    def extra_repr(self) -> str:
        return f'order={self.order!r}'
