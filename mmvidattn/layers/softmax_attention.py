# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import softmax_attention


@MODELS.register_module()
class SoftmaxAttention(nn.Module):
    """Softmax attention for :class:`VideoSelfAttention`: the baseline.

    Args:
        head_dims: Width D of a head.
        dropout: Dropout of the attention weights.
    """

    def __init__(self, head_dims: int, dropout: float = 0.) -> None:
        super().__init__()
        self.dropout = dropout

    def feature_map(self, x: Tensor) -> Tensor:
        """Softmax needs no map of queries and keys."""
        return x

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """[*, N, G, D], [*, M, G, D], [*, M, G, D] to [*, N, G, D]."""
        return softmax_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.)
