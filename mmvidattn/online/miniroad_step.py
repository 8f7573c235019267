# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from torch import Tensor

from .frame_step import FrameStep


class MiniROADStep(FrameStep):
    """The step of streams of :class:`mmvidattn.online.MiniROAD`.

    A stream is the state of its GRU: ``hidden``, [B, layers, C]. It has no
    memories whose rates would count.
    """

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
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
