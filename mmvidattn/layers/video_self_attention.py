# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops.token_sequences import PATTERNS as SEQUENCES
from ..ops.token_sequences import from_sequences, to_sequences
from ..ops.torch_private import has_hooks
from ..utils.arguments import check_arguments
from ..utils.checks import check_divides
from .feature_fixation import FeatureFixation
from .linear import Linear
from .neighbor_shift import NeighborShift

PATTERNS = (*SEQUENCES, 'window')
Pattern = Literal[PATTERNS]


@check_arguments
class VideoSelfAttention(nn.Module):
    """Self-attention of video tokens, with its projections.

    Shifts keys and values, maps and reweights queries and keys, and applies
    the attention. This is the paper's order of neighborhood association and
    feature fixation, Sec. 5.3; ``fixation_first`` selects the other order.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        attention: Config of a :class:`BaseAttention`, such as
            ``dict(type='LinearAttention')``.
        grid_shape: Frames, rows and columns (T, H, W) of the tokens in the
            model. Clips of another size are accepted unless the attention has
            tables.
        pattern: Tokens that attend to each other: 'space' (of a frame),
            'time' (of a position), 'joint' (all) or 'window' (of the
            ``window_frames`` nearest frames; at the ends of the clip the
            window stays inside). Defaults to 'joint'.
        fixation: Options of :class:`FeatureFixation`. Defaults to None, for
            no fixation.
        shifts: Options of :class:`NeighborShift` modules, applied in order.
            Defaults to none.
        window_frames: Frames of an attention window, only for 'window'.
        qkv_bias: Add a bias to the projection to Q, K, V. Defaults to True.
        dropout: Dropout after the output projection. Defaults to 0.
        fixation_first: Shift keys after they are reweighted. Requires
            ``fixation`` and ``shifts``. Defaults to False.
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
                 fixation_first: bool = False) -> None:
        super().__init__()
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        if (pattern == 'window') != (window_frames is not None):
            raise ValueError("window_frames must be set if pattern='window', "
                             f'and only then, got {window_frames} with '
                             f'{pattern!r}')
        if fixation_first and (fixation is None or not shifts):
            raise ValueError('fixation_first=True requires fixation and '
                             f'shifts, got fixation={fixation} and '
                             f'shifts={list(shifts)}')
        head_dims = embed_dims // num_heads
        self.fixation_first = fixation_first
        self.num_heads = num_heads
        self.pattern = pattern
        self.window_frames = window_frames
        self.qkv = Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.shifts = nn.Sequential(
            *(NeighborShift(embed_dims, **shift) for shift in shifts))
        self.attention = MODELS.build(
            dict(
                head_dims=head_dims,
                num_heads=num_heads,
                seq_shape=self._shapes(grid_shape)[1],
                **attention))
        self.fixation = None if fixation is None else FeatureFixation(
            head_dims, num_heads=num_heads, **fixation)
        self.proj = Linear(embed_dims, embed_dims)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within clips [B, T, H, W, C]; return the same shape."""
        qkv = self.qkv(x)
        y = None
        if self._is_fusible():
            y = self.attention.fused(qkv, self.pattern, self.shifts,
                                     self.fixation)
        if y is None:
            y = self._by_parts(qkv)
        return self.dropout(self.proj(y))

    def _by_parts(self, qkv: Tensor) -> Tensor:
        q, kv = qkv.unflatten(-1, (3, -1)).split((1, 2), dim=-2)
        if not self.fixation_first:
            kv = self.shifts(kv)
        q, k, v = (x.unflatten(-1, (self.num_heads, -1))
                   for x in (q.squeeze(-2), *kv.unbind(-2)))
        q, k = self.attention.feature_map(q), self.attention.feature_map(k)
        if self.fixation is not None:
            q, k = self.fixation(q, k, v)
        if self.fixation_first:
            kv = self.shifts(torch.stack((k, v), dim=-3).flatten(-2))
            k, v = kv.unflatten(-1, (self.num_heads, -1)).unbind(-3)
        return self._attend(q, k, v).flatten(-2)

    def _is_fusible(self) -> bool:
        """Return True if the parts run in their usual order, without hooks."""
        parts = self.attention, self.fixation, *self.shifts
        return not self.fixation_first and not any(
            has_hooks(module) for part in parts
            if part is not None for module in part.modules())

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend by the pattern; all tensors are [B, T, H, W, G, D]."""
        B, T, H, W = q.shape[:4]
        shapes = self._shapes(
            (T, H, W)) if self.attention.takes_shapes else ()
        if self.pattern != 'window':
            q, k, v = (to_sequences(x, self.pattern) for x in (q, k, v))
            return from_sequences(
                self.attention(q, k, v, *shapes), self.pattern, (T, H, W))
        q, k, v = (x.flatten(2, 3) for x in (q, k, v))
        frames = self._window(T, q.device)
        k, v = (x[:, frames].flatten(2, 3) for x in (k, v))
        y = self.attention(q, k, v, *shapes)
        return y.reshape(B, T, H, W, *y.shape[-2:])

    def _shapes(
        self, grid_shape: tuple[int, int, int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the axes of a sequence of queries and of one of keys."""
        T, *frame = grid_shape
        if self.pattern == 'window':
            return tuple(frame), (self.window_frames, *frame)
        shape = dict(
            time=(T, ), space=tuple(frame),
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
        return first[:, None] + torch.arange(
            self.window_frames, device=device)
