# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import polaformer_attention
from ..ops.linear_attention import Order
from ..utils.arguments import Count, Positive, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class PolaFormerAttention(BaseAttention):
    """Polarity-aware linear attention, `PolaFormer
    <https://arxiv.org/abs/2501.15061>`_.

    Linear attention that also multiplies negative channels. Each channel of
    queries and keys has a learned scale and a learned exponent between 1 and
    1 + ``alpha``. A linear map multiplies the result (the coefficients
    :math:`G^s` and :math:`G^o`).

    Differs from the paper: the linear map reads the query of its head instead
    of the token, and all heads share it, like a gate of
    :class:`FeatureFixation`.

    Differs from the released code, whose block has two more parts: positions
    of the keys, and a depth-wise convolution of the values.

    Args:
        head_dims: Width D of a head, even.
        num_heads, seq_shape: See :class:`BaseAttention`.
        alpha: Range of the exponents. Defaults to 4.
        order: See :func:`mmvidattn.ops.linear_attention`. Defaults to 'auto'.
        eps: Added to the mean of the scores. Defaults to 1e-6.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 alpha: Positive = 4.,
                 order: Order = 'auto',
                 eps: Positive = 1e-6) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.alpha = alpha
        self.order = order
        self.eps = eps
        self.scale = nn.Parameter(torch.zeros(num_heads, head_dims))
        self.power = nn.Parameter(torch.zeros(num_heads, head_dims))
        self.gate = nn.Linear(head_dims, head_dims)

    def feature_map(self, x: Tensor) -> Tensor:
        return x / F.softplus(self.scale).to(x.dtype)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y = polaformer_attention(
            q, k, v, 1 + self.alpha * self.power.sigmoid(), order=self.order,
            eps=self.eps)
        return y * self.gate(q)

    def extra_repr(self) -> str:
        return f'alpha={self.alpha:g}, order={self.order!r}'
