# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Stream steps of MiniROAD and MAT, and a function that builds the step of any
network.

``testra_step.py`` has the step of TeSTra, and ``video_step.py`` the step of
networks of images.
"""
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..ops.temporal_smoothing import fill_rows, read_rows, write_row
from .mat import MAT
from .miniroad import MiniROAD
from .online_video_encoder import OnlineVideoEncoder
from .stream_step import FrameStep, StreamStep
from .testra import TeSTra
from .testra_step import TeSTraStep
from .video_step import VideoStep
from .window_frames import long_memory_frames, work_memory_start


class MiniROADStep(FrameStep):
    """Step for streams of :class:`mmvidattn.online.MiniROAD`.

    A stream's memory is the state of the GRU: ``hidden``, [B, layers, C].
    Sample rates have no effect.
    """

    def memory(self, batch_size: int) -> dict[str, Tensor]:
        gru = self.model.backbone.gru
        return dict(hidden=self.example.new_zeros(
            batch_size, gru.num_layers, gru.hidden_size))

    def advance(self, row: Tensor, step: Tensor,
                state: dict[str, Tensor]) -> None:
        gru, hidden = self.model.backbone.gru, []
        for layer, before in enumerate(state['hidden'].unbind(dim=1)):
            row = torch.gru_cell(row, before, *(
                getattr(gru, f'{name}_l{layer}')
                for name in ('weight_ih', 'weight_hh', 'bias_ih', 'bias_hh')))
            hidden.append(row)
        state['hidden'].copy_(torch.stack(hidden, dim=1))

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        return state['hidden'][:, -1:].relu()


class MATStep(FrameStep):
    """Step for streams of :class:`mmvidattn.online.MAT`.

    A frame is projected once. A stream's memory is the projections of its
    frames: ring buffers ``long``, [B, ., 2C], and ``work``, [B, ., C].
    Everything that mixes frames is computed anew in each step, because the
    segments of the long memory move with each frame, and every token of the
    work memory attends to a future that depends on all of them.
    """

    @property
    def stretches_by_default(self) -> bool:
        """True, as in the released code."""
        return True

    def memory(self, batch_size: int) -> dict[str, Tensor]:
        backbone = self.model.backbone
        C = backbone.embed_dims
        work = (backbone.work_memory_length - 1) * self.work_rate + 1
        long = work + backbone.long_memory_length * self.long_rate
        zeros = self.example.new_zeros
        return dict(long=zeros(batch_size, long, 2 * C),
                    work=zeros(batch_size, work, C))

    def _split(self, row: Tensor) -> dict[str, Tensor]:
        C = self.model.backbone.embed_dims
        return dict(zip(('long', 'work'), row.split([2 * C, C], dim=-1)))

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

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        for name, x in self._split(state['row']).items():
            fill_rows(state[name], state['count'], number, x)


STEPS = {
    MAT: MATStep,
    MiniROAD: MiniROADStep,
    OnlineVideoEncoder: VideoStep,
    TeSTra: TeSTraStep,
}


def make_stream_step(model: nn.Module, *args: Any,
                     **kwargs: Any) -> StreamStep:
    """Build the stream step of a model.

    Args:
        model: :class:`mmvidattn.recognizers.OnlineActionDetector` in eval
            mode.
        *args: Arguments of :class:`mmvidattn.online.StreamStep`.
        **kwargs: Keyword arguments of ``StreamStep``.

    Raises:
        ValueError: If the backbone is not supported, or the options do not
            fit it.
    """
    for kind, step in STEPS.items():
        if isinstance(model.backbone, kind):
            return step(model, *args, **kwargs)
    raise ValueError(
        'the backbone of a model for streams must be one of '
        f'{", ".join(kind.__name__ for kind in STEPS)}, got '
        f'{type(model.backbone).__name__}')
