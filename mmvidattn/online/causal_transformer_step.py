# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from torch import Tensor

from ..ops.temporal_smoothing import write_row
from .frame_step import FrameStep


class CausalTransformerStep(FrameStep):
    """The step of streams of :class:`mmvidattn.online.CausalTransformer`.

    A stream is the keys and values of its latest W frames in each block:
    rings ``kv_0``, ..., each [B, W, 2C], and the ``newest`` features,
    [B, C]. It has no memories whose rates would count.
    """

    @property
    def reach(self) -> int:
        backbone = self.model.backbone
        return len(backbone.blocks) * backbone.attention_window

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        backbone = self.model.backbone
        W, C = backbone.attention_window, backbone.embed_dims
        zeros = self.example.new_zeros
        return {
            'newest': zeros(batch_size, C),
            **{f'kv_{i}': zeros(batch_size, W, 2 * C)
               for i in range(len(backbone.blocks))}
        }

    def advance(self, row: Tensor, step: Tensor,
                state: dict[str, Tensor]) -> None:
        backbone, x = self.model.backbone, row[:, None]
        W = backbone.attention_window
        # Keys stand in the order of the ring.
        ago = (step[:, None] - torch.arange(W, device=step.device)) % W
        # Places that no frame has come to yet are as those beyond it.
        ago = ago.masked_fill(ago > step[:, None], W)
        biases = backbone.bias(ago).permute(0, 2, 1, 3)[:, :, :, None]
        for i, (block, bias) in enumerate(zip(backbone.blocks, biases)):
            attention, ring = block.self_attn, state[f'kv_{i}']
            write_row(ring, step, attention.kv(x)[:, 0])
            x, _ = block.attend(x, attention.q(x), ring, bias)
            x = block(x)
        state['newest'].copy_(backbone.norm(x)[:, 0])

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        return state['newest'][:, None]
