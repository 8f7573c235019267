# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import rotary_positions, softmax_attention
from ..utils.arguments import Count, Fraction, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class RotaryAttention(BaseAttention):
    """Softmax attention with rotary positions, as in V-JEPA 2.

    Queries and keys are rotated by their positions, so sequences may have any
    size. If only the keys have a leading axis (the frames of a window), the
    positions of this axis do not count.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        dropout: Dropout of the attention weights. Defaults to 0.
        paired, span: See :func:`mmvidattn.ops.rotary_positions`.
    """
    takes_shapes = True

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 dropout: Fraction = 0.,
                 paired: bool = True,
                 span: Count | None = None) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.dropout = dropout
        self.paired = paired
        self.span = span

    def forward(self, q: Tensor, k: Tensor, v: Tensor,
                query_shape: tuple[int, ...],
                key_shape: tuple[int, ...]) -> Tensor:
        q, k = (rotary_positions(x, shape, len(query_shape), self.paired,
                                 self.span)
                for x, shape in ((q, query_shape), (k, key_shape)))
        return softmax_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.)
