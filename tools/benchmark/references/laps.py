# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reference implementation of leap attention and periodic shift.

It follows the paper's equations literally: lists of frame numbers pair the
frames (Algorithm 1) and gather queries, keys and values; the attention matrix
is computed; and the shift fills a tensor of zeros (Eq. 16-18).
"""
import copy

import torch
from torch import Tensor, nn

from mmvidattn.layers.temporal import LAPSAttention


def _lists(num_frames: int, level: int) -> tuple[list[int], list[int]]:
    step = num_frames // 2**level
    first, second = [], []
    for t in range(num_frames):
        if t not in first + second:
            first.append(t)
            second.append(t + step)
    return first, second


class TranscribedLAPSAttention(nn.Module):
    """Attention [B T, *, C] with the projections of a ``LAPSAttention``."""

    def __init__(self, ours: LAPSAttention) -> None:
        super().__init__()
        self.num_heads = ours.num_heads
        self.qkv, self.proj = ours.qkv, ours.proj
        mixing = ours.mixing
        self.num_frames = mixing.num_frames
        self.fraction = mixing.shift_fraction
        first, second = _lists(mixing.num_frames, mixing.level)
        order = first + second
        self.first, self.second = first, second
        self.back = sorted(range(len(order)), key=order.__getitem__)

    def forward(self, x: Tensor) -> Tensor:
        shape, T, G = x.shape, self.num_frames, self.num_heads
        qkv = self.qkv(x.flatten(1, -2))
        N = qkv.shape[1]
        # [3, B, T, G, N, D]
        qkv = qkv.view(-1, T, N, 3, G, shape[-1] // G).permute(
            3, 0, 1, 4, 2, 5)
        q, k, v = (
            torch.cat([y[:, self.first], y[:, self.second]], dim=-2)
            for y in qkv)
        weights = (q @ k.transpose(-2, -1) * q.shape[-1]**-0.5).softmax(-1)
        y = weights @ v
        y = torch.cat([y[..., :N, :], y[..., N:, :]], dim=1)[:, self.back]
        y = self.shift(y).transpose(2, 3).reshape(shape)
        return self.proj(y)

    def shift(self, x: Tensor) -> Tensor:
        """Shift [B, T, G, N, D]."""
        fold = int(x.shape[-1] * self.fraction)
        out = torch.zeros_like(x)
        out[:, :-1, ..., :fold] = x[:, 1:, ..., :fold]
        out[:, 1:, ..., fold:2 * fold] = x[:, :-1, ..., fold:2 * fold]
        out[..., 2 * fold:] = x[..., 2 * fold:]
        return out


def transcribe(model: nn.Module) -> nn.Module:
    """Copy a network and its weights, with transcribed attention."""
    model = copy.deepcopy(model)
    for block in [*model.modules()]:
        if isinstance(getattr(block, 'attn', None), LAPSAttention):
            block.attn = TranscribedLAPSAttention(block.attn)
    return model
