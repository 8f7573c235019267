# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..ops.temporal_smoothing import fill_rows, read_rows, write_row
from .frame_step import FrameStep
from .window_frames import long_memory_frames, work_memory_start

RINGS = 'long', 'work'


class MATStep(FrameStep):
    """The step of streams of :class:`mmvidattn.online.MAT`.

    A frame is projected once. A stream is the rows that this makes, for as
    long as they are in a memory: rings ``long``, [B, ., 2C], and ``work``,
    [B, ., C]. All that mixes frames is computed in each step: segments of the
    long memory begin a frame later each time, and each token of the work
    memory reads a future that all of them make.

    Args:
        model: See :class:`~mmvidattn.online.frame_step.FrameStep`, also for
            the others.
        *args: Likewise.
        stretch_long_memory: As of the dataset; True by default, as released.
        **kwargs: Likewise.
    """

    def __init__(self,
                 model: nn.Module,
                 *args,
                 stretch_long_memory: bool | None = None,
                 **kwargs) -> None:
        if stretch_long_memory is None:
            stretch_long_memory = True
        super().__init__(model, *args, **kwargs,
                         stretch_long_memory=stretch_long_memory)

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        backbone = self.model.backbone
        C = backbone.embed_dims
        work = (backbone.work_memory_length - 1) * self.work_rate + 1
        long = work + backbone.long_memory_length * self.long_rate
        zeros = self.example.new_zeros
        return dict(long=zeros(batch_size, long, 2 * C),
                    work=zeros(batch_size, work, C))

    def _split(self, row: Tensor) -> dict[str, Tensor]:
        C = self.model.backbone.embed_dims
        return dict(zip(RINGS, row.split([2 * C, C], dim=-1)))

    def advance(self, row: Tensor, step: Tensor,
                state: dict[str, Tensor]) -> None:
        for name, x in self._split(row).items():
            write_row(state[name], step, x)

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        backbone, step = self.model.backbone, state['count'] - 1
        start, num_padded = work_memory_start(
            step, backbone.work_memory_length, self.work_rate)
        frames, mask = long_memory_frames(
            start, backbone.long_memory_length, self.long_rate,
            self.stretch_long_memory)
        ago = self.work_rate * torch.arange(
            backbone.work_memory_length - 1, -1, -1, device=step.device)
        return backbone.read(
            read_rows(state['long'], frames),
            read_rows(state['work'], step[:, None] - ago), ~mask, num_padded,
            1 + backbone.num_anticipation_tokens).work[-1]

    @torch.no_grad()
    def skip(self, number: int, state: dict[str, Tensor]) -> None:
        if number < 1:
            return
        for name, x in self._split(state['row']).items():
            fill_rows(state[name], state['count'], number, x)
        state['count'].add_(number)
        state['num_bad'].add_(number)
