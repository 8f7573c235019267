# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import softmax_attention
from ..utils.arguments import Count, Fraction, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class SoftmaxAttention(BaseAttention):
    """Softmax attention, the baseline.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        dropout: Dropout of the attention weights. Defaults to 0.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 dropout: Fraction = 0.) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return softmax_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.)
