# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A window a step, sharing what consecutive windows have in common."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .frame_rows import FrameRows, gather_rows


@torch.no_grad()
def dense_features(model: nn.Module,
                   features: Mapping[str, Tensor],
                   long_indices: Tensor,
                   work_indices: Tensor,
                   padding_mask: Tensor | None = None,
                   batch_size: int = 32) -> Tensor:
    """Features of the last step of many windows of one video.

    Each frame is projected once. Windows gather the rows of their frames, and
    of the work memory's last step, and the anticipated ones, alone everything
    is computed. A network that has a method ``dense`` has a way of its own.

    Args:
        model: ``TeSTra``, ``MiniROAD``, ..., in eval mode.
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
    if hasattr(model, 'dense'):
        return model.dense(features, long_indices, work_indices, padding_mask,
                           batch_size)
    if model.fusion == 'long':
        long_indices = torch.cat([long_indices, work_indices], dim=1)
    rows, outputs = FrameRows(model), []
    long_rows, work_rows = model.project(features)
    for first in range(0, len(work_indices), batch_size):
        some, read = slice(first, first + batch_size), None
        if model.encoder is not None:
            long = gather_rows(long_rows, long_indices[some])
            if rows.long_positions is not None:
                long = long + rows.long_positions
            mask = None if padding_mask is None else padding_mask[some]
            # Attention copies keys and values to mask them.
            if mask is not None and not mask.any():
                mask = None
            read = model.encoder.reader(long, mask)
        outputs.append(
            rows.read(read, gather_rows(work_rows, work_indices[some])))
    return torch.cat(outputs)
