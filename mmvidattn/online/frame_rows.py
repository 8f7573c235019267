# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from .block import Reader
from .testra import TeSTra


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """``rows[indices]``, several times as fast on a CPU."""
    return rows.index_select(0, indices.flatten()).unflatten(0, indices.shape)


class FrameRows(nn.Module):
    """Reads windows that share the rows of their frames, in testing.

    A row has no position, as a frame's differs from window to window. The
    projections are affine, ``f(x + p) = f(x) + f(p) - f(0)``, and the last two
    terms depend on the weights alone, as do the tokens of anticipation and the
    encoder's queries. They are computed here, once: the weights must not
    change afterwards.

    Args:
        model: In eval mode.
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
        """Compute what is said of the windows' last step, and of those ahead.

        Args:
            read_long: Reads the long memories; see :meth:`TeSTra.read`.
            work: Rows of the work memory's frames, of :meth:`TeSTra.project`,
                [B, L, R].
            num_padded: How many of a window's first frames are padding; int64,
                [B]. The others have the positions from 0 on.

        Returns:
            [B, 1 + A, C].
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
