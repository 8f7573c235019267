# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Windows of a stream: their frames, and features from projected frames.

Full windows match :mod:`mmvidattn.datasets.feature_windows`.
"""
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .block import Reader
from .testra import TeSTra


def work_memory_start(step: Tensor, length: int,
                      rate: int) -> tuple[Tensor, Tensor]:
    """Return the first frame of a work memory, and the size of its padding.

    A work memory is padded until the stream has enough frames.

    Args:
        step: Number of the newest frame, int64, [B].
        length: Samples L of the work memory.
        rate: Frames per sample.

    Returns:
        Number of the first frame, and number of padded samples, int64 [B].
    """
    num_padded = (length - 1 - step // rate).clamp(min=0)
    return step - rate * (length - 1 - num_padded), num_padded


def long_memory_frames(start: Tensor, length: int, rate: int,
                       stretch: bool) -> tuple[Tensor, Tensor]:
    """Return the frames of the long memories before work memories.

    Args:
        start: First frames of the work memories, int64 [B].
        length: Samples N of the long memory.
        rate: Frames per sample.
        stretch: At the start of a stream, let the samples start at frame 0.

    Returns:
        Numbers of the frames, oldest first, int64 [B, N], with 0 for padding;
        and a mask, bool [B, N], False for padding.
    """
    end = start
    if stretch:
        end = (start + rate - 1) // rate * rate
        end = end.where(start < length * rate, start)
    ago = torch.arange(length, 0, -1, device=start.device)
    frames = end[:, None] - rate * ago
    # Frame 0 stands for frames before the stream, and is masked except once.
    mask = (frames > -rate) | (ago == 1)
    return frames.clamp(min=0), mask


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """Return ``rows[indices]``, several times as fast on a CPU."""
    return rows.index_select(0, indices.flatten()).unflatten(0, indices.shape)


class WindowReader(nn.Module):
    """Inference part of TeSTra: windows of projected frames to features.

    Several windows use the same projection of a frame
    (:meth:`TeSTra.project`). The projection contains no position, because the
    position of a frame differs from window to window. This module adds the
    positions. It uses that a projection f is affine:
    ``f(x + p) = f(x) + f(p) - f(0)``. The last two terms, the anticipation
    tokens and the encoder's queries depend only on the weights. The
    constructor computes them once, so the weights must not change later.

    Args:
        model: Model in eval mode.
    """

    @torch.no_grad()
    def __init__(self, model: TeSTra) -> None:
        super().__init__()
        self.model = model
        project = model.decoder.project
        positions = model.work_positions()
        zero = torch.zeros_like(positions[:1])
        tokens = model.anticipation_tokens
        tokens = zero[:0] if tokens is None else tokens
        self.register_buffer('positions', project(positions) - project(zero))
        self.register_buffer('tokens', project(tokens))
        self.register_buffer('long_positions', None)
        if model.encoder is None:
            return
        for i, (x, q) in enumerate(model.encoder.prefix()):
            self.register_buffer(f'prefix_{i}', x)
            self.register_buffer(f'queries_{i}', q)
        positions, project = model.long_positions(), model.encoder.project
        if positions is not None:
            self.long_positions = project(positions) - project(zero)

    def read(self,
             read_long: Reader | None,
             work: Tensor,
             num_padded: Tensor | None = None) -> Tensor:
        """Compute features of the last step and of the anticipated steps.

        Args:
            read_long: Reader of the long memories; see :meth:`TeSTra.read`.
            work: Projections of the work memory's frames, [B, L, R].
            num_padded: Number of padded frames at the start of each window,
                int64, [B]. Positions start at 0 after the padding.

        Returns:
            Features, [B, 1 + A, C].
        """
        model, (batch_size, length, _) = self.model, work.shape
        if model.num_anticipation_tokens:
            work = torch.cat(
                [work, self.tokens.expand(batch_size, -1, -1)], dim=1)
        positions = self.positions
        slots = torch.arange(len(positions), device=work.device)
        if num_padded is not None:
            positions = gather_rows(
                positions, (slots - num_padded[:, None]).clamp(min=0))
        if not model.work_memory_pos_embed:
            positions = positions.where((slots >= length)[:, None], 0)
        prefix = None
        if model.encoder is not None:
            prefix = [(getattr(self, f'prefix_{i}'),
                       getattr(self, f'queries_{i}'))
                      for i in range(len(model.encoder.stages))]
        return model.read(
            read_long,
            work + positions,
            prefix,
            num_outputs=1 + model.num_anticipation_tokens,
            num_padded=num_padded)


@torch.no_grad()
def dense_features(model: nn.Module,
                   features: Mapping[str, Tensor],
                   long_indices: Tensor,
                   work_indices: Tensor,
                   padding_mask: Tensor | None = None,
                   batch_size: int = 32) -> Tensor:
    """Compute the features of the last step of many windows of one video.

    Each frame is projected once, and windows gather the projections of their
    frames. Later layers compute only the last step of the work memory and the
    anticipated steps. If the network has a method ``dense``, it is called
    instead.

    Args:
        model: ``TeSTra``, ``MiniROAD``, ..., in eval mode.
        features: ``{modality: features}`` of the entire video, [T, channels].
        long_indices: Frames of each window's long memory, [W, N].
        work_indices: Frames of each window's work memory, [W, L].
        padding_mask: Bool, [W, N], True where the long memory is padded.
        batch_size: Number of windows per batch. Defaults to 32.

    Returns:
        The last 1 + A features that ``model`` returns for each window,
        [W, 1 + A, C].

    Raises:
        ValueError: If the model is in training mode, or the windows have the
            wrong number of frames.
    """
    if model.training:
        raise ValueError('model must be in eval mode for dense_features; call '
                         'model.eval()')
    for name, indices, length in (
        ('long_indices', long_indices, model.long_memory_length),
        ('work_indices', work_indices, model.work_memory_length)):
        if indices.dim() != 2 or indices.shape[1] != length:
            raise ValueError(f'{name} must be [W, {length}], got '
                             f'{tuple(indices.shape)}')
    if hasattr(model, 'dense'):
        return model.dense(features, long_indices, work_indices, padding_mask,
                           batch_size)
    if model.fusion == 'long':
        long_indices = torch.cat([long_indices, work_indices], dim=1)
    reader, outputs = WindowReader(model), []
    all_long, all_work = model.project(features)
    for first in range(0, len(work_indices), batch_size):
        batch, read_long = slice(first, first + batch_size), None
        if model.encoder is not None:
            long = gather_rows(all_long, long_indices[batch])
            if reader.long_positions is not None:
                long = long + reader.long_positions
            mask = None if padding_mask is None else padding_mask[batch]
            # Drop an empty mask, because masking copies the keys and values.
            if mask is not None and not mask.any():
                mask = None
            read_long = model.encoder.reader(long, mask)
        work = gather_rows(all_work, work_indices[batch])
        outputs.append(reader.read(read_long, work))
    return torch.cat(outputs)
