# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import feature_map, linear_attention
from ..ops.frame_causal_linear_attention import (
    decay_frame_sums,
    frame_causal_linear_attention,
    initial_frame_sums,
)
from ..ops.linear_attention import FeatureMap, Order
from ..utils.arguments import Count, Fraction, Positive, check_arguments
from ..utils.modules import State
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class LinearAttention(BaseAttention):
    """Kernelized attention without parameters.

    With ``kernel='elu+1'`` and no offset it is the `Linear Transformer
    <https://arxiv.org/abs/2006.16236>`_.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        kernel: Feature map of queries and keys: 'relu', 'elu+1', 'sigmoid'
            or 'identity'. Defaults to 'relu'.
        offset: Added to the mapped queries and keys. 'auto' is
            ``head_dims ** -0.5``, which the released code adds to ReLU.
            Defaults to 0.
        order: See :func:`mmvidattn.ops.linear_attention`. Causal attention
            has one order, which the option does not change. Defaults to
            'auto'.
        dropout: Dropout of queries and keys, as in the released code; linear
            attention has no attention weights to drop. Defaults to 0.
        eps: Added to the denominator. Defaults to 1e-6.
    """
    is_causal = True

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 kernel: FeatureMap = 'relu',
                 offset: float | Literal['auto'] = 0.,
                 order: Order = 'auto',
                 dropout: Fraction = 0.,
                 eps: Positive = 1e-6) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.kernel = kernel
        self.offset = head_dims**-0.5 if offset == 'auto' else float(offset)
        self.order = order
        self.eps = eps
        self.dropout = nn.Dropout(dropout)

    def feature_map(self, x: Tensor) -> Tensor:
        return feature_map(x, self.kernel, self.offset)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(self.dropout(q), self.dropout(k), v,
                                order=self.order, eps=self.eps)

    def forward_causal(self, q: Tensor, k: Tensor, v: Tensor,
                       decay: Tensor | None, state: State,
                       elapsed: Tensor | None) -> tuple[Tensor, State]:
        y, (sums, carry) = frame_causal_linear_attention(
            self.dropout(q), self.dropout(k), v, decay,
            (state['sums'], state['carry']), elapsed, eps=self.eps)
        return y, dict(sums=sums, carry=carry)

    def initial_state(self, v: Tensor) -> State:
        sums, carry = initial_frame_sums(v, self.head_dims)
        return dict(sums=sums, carry=carry)

    def decay_state(self, state: State, decay: Tensor | None,
                    elapsed: Tensor) -> State:
        if decay is None:
            return dict(state)
        sums, carry = decay_frame_sums((state['sums'], state['carry']), decay,
                                       elapsed)
        return dict(sums=sums, carry=carry)
