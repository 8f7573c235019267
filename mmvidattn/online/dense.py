# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A window a step, sharing what consecutive windows have in common."""
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from .testra import TeSTra


class _Shared:
    """An affine map of frames, each with a position of its window added.

    ``f(x + p) = f(x) + f(p) - f(0)``, of which the first is computed once a
    frame, and the others once.

    Args:
        project: The map: [*, C] to a tuple of tensors [*, ...].
        frames: [T, C].
        positions: [S, C], or None where none are added.
    """

    def __init__(self, project: Callable[[Tensor], tuple[Tensor, ...]],
                 frames: Tensor, positions: Tensor | None) -> None:
        self.frames = project(frames)
        self.positions = (None, ) * len(self.frames)
        if positions is not None:
            zero = project(torch.zeros_like(frames[:1]))
            self.positions = tuple(
                p - z for p, z in zip(project(positions), zero))

    def __call__(self, indices: Tensor) -> tuple[Tensor, ...]:
        """Frames [B, S] to the maps of theirs, each [B, S, ...]."""
        return tuple(
            _rows(x, indices) if p is None else _rows(x, indices) + p
            for x, p in zip(self.frames, self.positions))


def _rows(x: Tensor, indices: Tensor) -> Tensor:
    """``x[indices]``, several times as fast on a CPU."""
    return x.index_select(0, indices.flatten()).unflatten(0, indices.shape)


@torch.no_grad()
def dense_features(model: TeSTra,
                   features: Mapping[str, Tensor],
                   long_indices: Tensor,
                   work_indices: Tensor,
                   padding_mask: Tensor | None = None,
                   batch_size: int = 32) -> Tensor:
    """Features of the last step of many windows of one video.

    What a window shares with others is computed once: the projections of a
    frame's features, its keys and values in the long memory and those of the
    work memory in which the decoder has not yet mixed anything, the queries
    of the encoder. Of the work memory's last step, and the anticipated ones,
    alone everything is computed.

    Args:
        model: In eval mode.
        features: ``{modality: features}`` of the whole video, [T, channels].
        long_indices: Frames of each window's long memory, [W, N].
        work_indices: Frames of each window's work memory, [W, L].
        padding_mask: Bool, [W, N], True where the long memory is padded.
        batch_size: Windows at a time.

    Returns:
        [W, 1 + A, C]: the last rows of what ``model`` gives for each window.

    Raises:
        ValueError: If the model is in training mode, or windows have another
            number of frames than the model.
    """
    if model.training:
        raise ValueError('dense_features takes a model in eval mode; call '
                         'model.eval()')
    for name, indices, length in (
        ('long_indices', long_indices, model.long_memory_length),
        ('work_indices', work_indices, model.work_memory_length)):
        if indices.dim() != 2 or indices.shape[1] != length:
            raise ValueError(f'{name} must be [W, {length}], got '
                             f'{tuple(indices.shape)}')
    windows = _Windows(model, features)
    outputs = []
    for first in range(0, len(work_indices), batch_size):
        some = slice(first, first + batch_size)
        mask = None if padding_mask is None else padding_mask[some]
        # Attention copies keys and values to mask them.
        if mask is not None and not mask.any():
            mask = None
        outputs.append(windows(long_indices[some], work_indices[some], mask))
    return torch.cat(outputs)


class _Windows:
    """What the windows of a video share, and the rest of each."""

    def __init__(self, model: TeSTra, features: Mapping[str, Tensor]) -> None:
        self.model = model
        positions = model.work_positions()
        num_work = model.work_memory_length
        if model.encoder is not None:
            long = model.long_projection(features)
            self.long = _Shared(
                lambda x: _flat(model.encoder.keys_values(x)), long,
                model.long_positions())
        self.work = model.work_projection(features)
        self.work_positions = None
        if model.work_memory_pos_embed:
            self.work_positions = positions[:num_work]
        transformer = model.decoder.transformer
        self.qkv = _Shared(transformer.blocks[0].project, self.work,
                           self.work_positions)
        self.tokens = None
        if model.anticipation_tokens is not None:
            self.tokens = model.anticipation_tokens + positions[num_work:]
            self.tokens_qkv = transformer.blocks[0].project(self.tokens)
        if model.decoder.with_work_memory:
            self.keys_values = _Shared(
                lambda x: _flat(transformer.keys_values(x)), self.work,
                self.work_positions)
            if self.tokens is not None:
                self.tokens_keys_values = _flat(
                    transformer.keys_values(self.tokens))

    def __call__(self, long_indices: Tensor, work_indices: Tensor,
                 padding_mask: Tensor | None) -> Tensor:
        """[B, N], [B, L] and [B, N] to [B, 1 + A, C]."""
        model = self.model
        memory = None
        if model.encoder is not None:
            memory = self._compress(long_indices, work_indices, padding_mask)
        x = _rows(self.work, work_indices)
        if self.work_positions is not None:
            x = x + self.work_positions
        qkv = self.qkv(work_indices)
        keys_values = None
        if model.decoder.with_work_memory:
            keys_values = self.keys_values(work_indices)
        if self.tokens is not None:
            x, = _append((x, ), (self.tokens, ))
            qkv = _append(qkv, self.tokens_qkv)
            if keys_values is not None:
                keys_values = _append(keys_values, self.tokens_keys_values)
        return model.decoder(
            x,
            memory,
            num_outputs=1 + model.num_anticipation_tokens,
            qkv=qkv,
            work_keys_values=keys_values and _pairs(keys_values))

    def _compress(self, long_indices: Tensor, work_indices: Tensor,
                  padding_mask: Tensor | None) -> Tensor:
        key_mask = None if padding_mask is None else ~padding_mask
        if self.model.fusion == 'long':
            long_indices = torch.cat([long_indices, work_indices], dim=1)
            if key_mask is not None:
                key_mask = nn.functional.pad(
                    key_mask, (0, work_indices.shape[1]), value=True)
        return self.model.encoder(_pairs(self.long(long_indices)), key_mask)


def _flat(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
    return tuple(x for pair in pairs for x in pair)


def _pairs(flat: tuple[Tensor, ...]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(flat[::2], flat[1::2]))


def _append(xs: tuple[Tensor, ...],
            tokens: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Each [B, L, ...] with the same [A, ...] behind it."""
    return tuple(
        torch.cat([x, t.expand(len(x), *t.shape)], dim=1)
        for x, t in zip(xs, tokens))
