# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import cosformer_attention, feature_map
from ..ops.linear_attention import Order
from ..utils.arguments import Count, Positive, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class CosFormerAttention(BaseAttention):
    """Attention of `cosFormer <https://arxiv.org/abs/2202.08791>`_.

    Linear attention with ReLU that favors nearby tokens. It has no parameters.
    The distance is counted in row-major order, so vertical neighbors are a
    whole row apart. In the pattern 'window', queries have the positions of the
    window's first frame.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        order: See :func:`mmvidattn.ops.linear_attention`. Defaults to 'auto'.
        eps: Lower bound of the denominator. Defaults to 1e-6.
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
        return feature_map(x, 'relu')

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return cosformer_attention(q, k, v, order=self.order, eps=self.eps)

    def extra_repr(self) -> str:
        return f'order={self.order!r}'
