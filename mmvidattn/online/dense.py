# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dense evaluation of a video, with a window for each step."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .window_reader import WindowReader, gather_rows


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
