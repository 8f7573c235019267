# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
from collections.abc import Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops.fused_feature_fixation import Options, fixated_attention
from ..ops.precision import needs_gradients
from ..ops.torch_private import has_hooks, is_eager
from ..utils.arguments import Count, Positive, check_arguments, check_divides
from ..utils.modules import State, named, part_of
from .base_attention import BaseAttention
from .feature_fixation import FeatureFixation
from .linear_attention import LinearAttention
from .neighbor_shift import NeighborShift

PATTERNS = 'space', 'time', 'joint', 'window', 'causal'
Pattern = Literal[PATTERNS]
# Axes of [B, T, H, W] over which keys attend together.
TOKEN_AXES = dict(space=(2, 3), time=(1, ), joint=(1, 2, 3),
                  window=(1, 2, 3), causal=(1, 2, 3))


@check_arguments
class FrameDecay(nn.Module):
    """Decay of previous frames in causal attention, for each head.

    The weight of a previous frame is multiplied by ``exp(-rate * age)``, where
    the age is in nominal frame intervals. The half-lives rise geometrically
    over the heads.

    Args:
        num_heads: Number of heads G.
        half_life: Half-lives of the first and of the last head, in nominal
            intervals. Defaults to (8, 512).
        learned: Learn a factor of each rate. Its logarithm is the parameter,
            so weight decay pulls a rate to its initial value. Defaults to
            True.
    """

    def __init__(self,
                 num_heads: Count,
                 half_life: tuple[Positive, Positive] = (8, 512),
                 learned: bool = True) -> None:
        super().__init__()
        first, last = map(math.log, half_life)
        self.register_buffer(
            'initial_rate',
            math.log(2) / torch.linspace(first, last, num_heads).exp(),
            persistent=False)
        self.log_factor = nn.Parameter(
            torch.zeros(num_heads)) if learned else None

    def forward(self) -> Tensor:
        """Return the rate of each head, [G]."""
        if self.log_factor is None:
            return self.initial_rate
        return self.initial_rate * self.log_factor.exp()


@check_arguments
class VideoSelfAttention(nn.Module):
    """Self-attention of video tokens, with its projections.

    The module projects tokens to queries, keys and values, shifts channels of
    keys and values (:class:`NeighborShift`), maps and reweights queries and
    keys (:class:`FeatureFixation`), and applies an attention. This is the
    order of `Linear Video Transformer with Feature Fixation
    <https://arxiv.org/abs/2210.08164>`_, Sec. 5.3; ``fixation_first``
    reweights before it shifts.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        attention: Config of a :class:`BaseAttention`, such as
            ``dict(type='LinearAttention')``.
        grid_shape: Frames, rows and columns (T, H, W) of the tokens in the
            model. Clips of a different size are accepted unless the attention
            has tables.
        pattern: Tokens that attend to each other: 'space' (of a frame),
            'time' (of a position), 'joint' (all), 'window' (of the
            ``window_frames`` nearest frames; at the ends of the clip the
            window stays inside) or 'causal' (of the same and of all previous
            frames; shifts then read no later frames). Defaults to 'joint'.
        fixation: Options of :class:`FeatureFixation`. Defaults to None, for
            no fixation.
        shifts: Options of :class:`NeighborShift` modules, applied in order.
            Defaults to none.
        window_frames: Frames of an attention window, only for 'window'.
        qkv_bias: Add a bias to the projection to Q, K, V. Defaults to True.
        dropout: Dropout after the output projection. Defaults to 0.
        fixation_first: Shift keys after they are reweighted. Requires
            ``fixation`` and ``shifts``. Defaults to False.
        decay: Options of :class:`FrameDecay`, only for 'causal'. Defaults to
            None, for no decay.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 attention: dict,
                 grid_shape: tuple[int, int, int],
                 pattern: Pattern = 'joint',
                 fixation: dict | None = None,
                 shifts: Sequence[dict] = (),
                 window_frames: int | None = None,
                 qkv_bias: bool = True,
                 dropout: float = 0.,
                 fixation_first: bool = False,
                 decay: dict | None = None) -> None:
        super().__init__()
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        if (pattern == 'window') != (window_frames is not None):
            raise ValueError(
                'window_frames must be set for attention in windows, and only '
                f'then, got window_frames={window_frames} with attention '
                + 'not ' * (pattern != 'window') + 'in windows')
        if fixation_first and (fixation is None or not shifts):
            raise ValueError('fixation_first=True requires fixation and '
                             f'shifts, got fixation={fixation} and '
                             f'shifts={list(shifts)}')
        if decay is not None and pattern != 'causal':
            raise ValueError("decay requires pattern='causal', got "
                             f'decay={decay} with another pattern')
        if pattern == 'causal':
            shifts = [dict(shift, causal=True) for shift in shifts]
        head_dims = embed_dims // num_heads
        self.fixation_first = fixation_first
        self.num_heads = num_heads
        self.pattern = pattern
        self.window_frames = window_frames
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.shifts = nn.Sequential(
            *(NeighborShift(embed_dims, **shift) for shift in shifts))
        self.attention = MODELS.build(dict(
            head_dims=head_dims, num_heads=num_heads,
            seq_shape=self._shapes(grid_shape)[1], **attention))
        if not isinstance(self.attention, BaseAttention):
            raise TypeError(f'{type(self.attention).__name__} must inherit '
                            'from BaseAttention')
        if pattern == 'causal' and not self.attention.is_causal:
            raise ValueError("pattern='causal' requires LinearAttention, "
                             'GatedDeltaAttention, or SoftmaxAttention with '
                             f'window_frames, got {attention}')
        self.decay = None if decay is None else FrameDecay(num_heads, **decay)
        features = self.attention.feature_dims
        if fixation_first and features != head_dims:
            raise ValueError('fixation_first=True requires features of '
                             f'{head_dims} channels, the width of a head, got '
                             f'{features} of {attention}')
        self.fixation = None if fixation is None else FeatureFixation(
            head_dims, num_heads=num_heads, feature_dims=features, **fixation)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within clips [B, T, H, W, C]; return the same shape."""
        if self.pattern == 'causal':
            return self.forward_causal(x, self.initial_state(x))[0]
        return self.dropout(self.proj(self._mix(self.qkv(x))))

    def forward_causal(self, x: Tensor, state: State,
                       elapsed: Tensor | None = None) -> tuple[Tensor, State]:
        """Process the next frames of streams.

        Requires the pattern 'causal', or 'space' with causal shifts.

        Args:
            x: Tokens of T >= 1 frames, [B, T, H, W, C].
            state: State of :meth:`initial_state` or of the previous call.
            elapsed: Time since the previous frame in nominal intervals,
                [B, T]. Defaults to 1.

        Returns:
            [B, T, H, W, C], and the new state: tensors of the same names and
            shapes.
        """
        state = dict(state)
        y = self._mix(self.qkv(x), state, elapsed)
        return self.dropout(self.proj(y)), state

    def initial_state(self, x: Tensor) -> State:
        """Return the state for tokens [B, T, H, W, C] of any T."""
        state = {
            f'shifts.{i}': shift.initial_state(
                x.unsqueeze(-2).expand(*x.shape[:-1], 2, -1))
            for i, shift in enumerate(self.shifts) if shift.num_past_frames
        }
        if self.pattern == 'causal':
            v = x.flatten(2, 3).unflatten(-1, (self.num_heads, -1))
            state |= named('attention', self.attention.initial_state(v))
        return state

    def decay_state(self, state: State, elapsed: Tensor) -> State:
        """Return the state after ``elapsed`` nominal intervals, [B]."""
        if self.pattern != 'causal':
            return dict(state)
        return state | named('attention', self.attention.decay_state(
            part_of(state, 'attention'), self._rate(), elapsed))

    def _rate(self) -> Tensor | None:
        return None if self.decay is None else self.decay()

    def _mix(self, qkv: Tensor, state: State | None = None,
             elapsed: Tensor | None = None) -> Tensor:
        """Run shifts, feature map, fixation and attention.

        Args:
            qkv: [B, T, H, W, 3 C].
            state: State of streams, whose entries are replaced; or None.
            elapsed: Option of :meth:`forward_causal`.
        """
        if state is None and self._is_fused(qkv):
            gates = self.fixation.gates() if self.fixation else {}
            return fixated_attention(
                qkv, gates.pop('weights', ()), Options(
                    self.num_heads, self.pattern, self.attention.kernel,
                    self.attention.offset, self.attention.order,
                    self.attention.eps,
                    tuple((shift.plan, shift.segment_frames)
                          for shift in self.shifts), **gates))
        q, kv = qkv.unflatten(-1, (3, -1)).split((1, 2), dim=-2)
        if not self.fixation_first:
            kv = self._shift(kv, state)
        q, k, v = (x.unflatten(-1, (self.num_heads, -1))
                   for x in (q.squeeze(-2), *kv.unbind(-2)))
        q = self.attention.feature_map(q)
        k = self.attention.key_map(k, TOKEN_AXES[self.pattern])
        if self.fixation is not None:
            q, k = self.fixation(q, k, v)
        if self.fixation_first:
            kv = self._shift(torch.stack((k, v), dim=-3).flatten(-2), state)
            k, v = kv.unflatten(-1, (self.num_heads, -1)).unbind(-3)
        if self.pattern == 'causal':
            y, new = self.attention.forward_causal(
                *(x.flatten(2, 3) for x in (q, k, v)), self._rate(),
                part_of(state, 'attention'), elapsed)
            state.update(named('attention', new))
            return y.unflatten(2, q.shape[2:4]).flatten(-2)
        return self._attend(q, k, v).flatten(-2)

    def _is_fused(self, qkv: Tensor) -> bool:
        """Return True if training can keep the projections only."""
        fixation, attention = self.fixation, self.attention
        return (needs_gradients(qkv) and is_eager()
                and type(attention) is LinearAttention
                and self.pattern in ('space', 'time', 'joint')
                and not (attention.training and attention.dropout.p)
                and not self.fixation_first
                and (fixation is None or fixation.aggregate != 'mul'
                     and not fixation.across_heads)
                and not any(has_hooks(module)
                            for part in (attention, fixation, self.shifts)
                            if part is not None for module in part.modules()))

    def _shift(self, x: Tensor, state: State | None) -> Tensor:
        if state is None:
            return self.shifts(x)
        for i, shift in enumerate(self.shifts):
            name = f'shifts.{i}'
            if name in state:
                x, state[name] = shift.forward_causal(x, state[name])
            else:
                x = shift(x)
        return x

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Apply the attention to the tokens that `pattern` groups.

        All tensors are [B, T, H, W, G, D].
        """
        B, T, H, W = q.shape[:4]
        shapes = self._shapes((T, H, W)) if self.attention.takes_shapes else ()
        if self.pattern == 'window':
            q, k, v = (x.flatten(2, 3) for x in (q, k, v))
            frames = self._window(T, q.device)
            k, v = (x[:, frames].flatten(2, 3) for x in (k, v))
        else:
            q, k, v = (to_sequences(x, self.pattern) for x in (q, k, v))
        want = (*q.shape[:-1], v.shape[-1])
        y = self.attention(q, k, v, *shapes)
        if y.shape != want:
            raise ValueError(f'{type(self.attention).__name__}.forward must '
                             f'return [*, N, G, D], {want}, got '
                             f'{tuple(y.shape)}')
        return y.reshape(B, T, H, W, *want[-2:]) if self.pattern == 'window' \
            else from_sequences(y, self.pattern, (T, H, W))

    def _shapes(
        self, grid_shape: tuple[int, int, int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the axes of a sequence of queries and of one of keys."""
        T, *frame = grid_shape
        if self.pattern == 'window':
            return tuple(frame), (self.window_frames, *frame)
        shape = dict(
            time=(T, ), space=tuple(frame), causal=tuple(frame),
            joint=tuple(grid_shape))[self.pattern]
        return shape, shape

    def _window(self, num_frames: int, device: torch.device) -> Tensor:
        """Return the frames that each frame sees, [T, window_frames]."""
        if num_frames < self.window_frames:
            raise ValueError(
                f'window_frames={self.window_frames} exceeds the clip length '
                f'of {num_frames} frames')
        first = torch.arange(num_frames, device=device)
        first = (first - self.window_frames // 2).clamp(
            0, num_frames - self.window_frames)
        return first[:, None] + torch.arange(self.window_frames, device=device)


def to_sequences(x: Tensor, pattern: str) -> Tensor:
    """Split tokens [B, T, H, W, *] into sequences by their pattern.

    Returns:
        [B, T, H W, *] for 'space', [B, H W, T, *] for 'time', [B, T H W, *]
        for 'joint'.
    """
    if pattern == 'joint':
        return x.flatten(1, 3)
    x = x.flatten(2, 3)
    return x if pattern == 'space' else x.transpose(1, 2)


def from_sequences(x: Tensor, pattern: str,
                   grid: tuple[int, int, int]) -> Tensor:
    """Undo :func:`to_sequences`; ``grid`` is (T, H, W)."""
    if pattern == 'time':
        x = x.transpose(1, 2)
    lead = 2 if pattern == 'joint' else 3
    return x.reshape(x.shape[0], *grid, *x.shape[lead:])
