# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import (
    frame_causal_softmax_attention,
    rotary_positions,
    softmax_attention,
)
from ..ops.frame_causal_softmax_attention import initial_frame_window
from ..utils.arguments import Count, Fraction, check_arguments
from ..utils.modules import State
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class SoftmaxAttention(BaseAttention):
    """Softmax attention, the baseline.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        dropout: Dropout of the attention weights. Defaults to 0.
        window_frames: Frames W of causal attention, including the current
            one. The pattern 'causal' requires it, and a stream keeps the keys
            and values of W - 1 frames. Other patterns ignore it. Defaults to
            None.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 dropout: Fraction = 0.,
                 window_frames: Count | None = None) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.dropout = dropout
        self.window_frames = window_frames
        self.is_causal = window_frames is not None

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return softmax_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.)

    def forward_causal(self, q: Tensor, k: Tensor, v: Tensor,
                       decay: Tensor | None, state: State,
                       elapsed: Tensor | None) -> tuple[Tensor, State]:
        y, new = frame_causal_softmax_attention(
            q, k, v, self.window_frames, decay,
            (state['keys'], state['values'], state['ages']), elapsed,
            self.dropout if self.training else 0.)
        return y, dict(zip(('keys', 'values', 'ages'), new))

    def initial_state(self, v: Tensor) -> State:
        return dict(zip(('keys', 'values', 'ages'),
                        initial_frame_window(v, v, self.window_frames)))

    def decay_state(self, state: State, decay: Tensor | None,
                    elapsed: Tensor) -> State:
        ages = state['ages'] + elapsed.to(state['ages'].dtype)[:, None]
        return dict(state, ages=ages)


@MODELS.register_module()
@check_arguments
class RotaryAttention(SoftmaxAttention):
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
        super().__init__(head_dims, num_heads, seq_shape, dropout)
        self.paired = paired
        self.span = span

    def forward(self, q: Tensor, k: Tensor, v: Tensor,
                query_shape: tuple[int, ...],
                key_shape: tuple[int, ...]) -> Tensor:
        q, k = (rotary_positions(x, shape, len(query_shape), self.paired,
                                 self.span)
                for x, shape in ((q, query_shape), (k, key_shape)))
        return super().forward(q, k, v)
