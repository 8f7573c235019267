# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import feature_map, rala_attention
from ..ops.linear_attention import Order
from ..utils.arguments import Count, Positive, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class RALAAttention(BaseAttention):
    """Rank-augmented linear attention, `RALA
    <https://arxiv.org/abs/2411.07635>`_.

    Linear attention with ELU + 1 to keys that the mean query weights, whose
    result is multiplied by a linear map of the token. (The paper on feature
    fixation calls another attention RALA: :class:`LARAAttention`.)

    Differs from the paper: the linear map reads the mapped query of its head
    instead of the token, and all heads share it, like a gate of
    :class:`FeatureFixation`.

    Differs from the released code, whose block has two more parts: rotary
    positions of queries and keys, and a depth-wise convolution of the values.

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
        self.gate = nn.Linear(head_dims, head_dims)

    def feature_map(self, x: Tensor) -> Tensor:
        return feature_map(x, 'elu+1')

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y = rala_attention(q, k, v, order=self.order, eps=self.eps)
        return y * self.gate(q)

    def extra_repr(self) -> str:
        return f'order={self.order!r}'
