# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from .block import Reader
from .testra import TeSTra


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
