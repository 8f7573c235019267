# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments
from .feature_inputs import FeatureProjection, check_features
from .stream_step import StreamStep


@MODELS.register_module()
@check_arguments
class MiniROAD(BaseModule):
    """Recurrent network for online action detection.

    `MiniROAD: Minimal RNN Framework for Online Action Detection
    <https://openaccess.thecvf.com/content/ICCV2023/html/An_MiniROAD_Minimal_RNN_Framework_for_Online_Action_Detection_ICCV_2023_paper.html>`_,
    as released: a linear layer with LayerNorm and ReLU projects each frame,
    and a GRU with a ReLU on its outputs reads the frames in order. In
    training, each window starts with a state of zeros, and the loss uses only
    the last frame of the window (``OnlineActionHead(num_loss_steps=1)``).
    Evaluation reads an entire video (:meth:`dense`).

    Args:
        in_channels: Channels of each modality, which are concatenated in this
            order.
        embed_dims: Channels C of the GRU. Defaults to 1024.
        proj_dims: Channels R of a projected frame. Defaults to 2048.
        num_layers: Number of GRU layers. Defaults to 1.
        work_memory_length: Frames L in a window. Defaults to 128.
        drop_rate: Dropout rate of the GRU's input. Defaults to 0.2.
        init_cfg: ``init_cfg`` of ``BaseModule``.
    """

    # No long memory, no anticipation tokens.
    long_memory_length = 0
    num_anticipation_tokens = 0

    def __init__(self,
                 in_channels: Mapping[str, Count],
                 embed_dims: Count = 1024,
                 proj_dims: Count = 2048,
                 num_layers: Count = 1,
                 work_memory_length: Count = 128,
                 drop_rate: Fraction = 0.2,
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.in_channels = dict(in_channels)
        self.embed_dims = embed_dims
        self.work_memory_length = work_memory_length
        self.projection = FeatureProjection(
            in_channels, proj_dims, with_norm=True)
        self.drop = nn.Dropout(drop_rate)
        self.gru = nn.GRU(proj_dims, embed_dims, num_layers, batch_first=True)

    def project(self, features: Mapping[str, Tensor]) -> Tensor:
        """Project each frame by itself, to [*, R].

        Args:
            features: Features of each modality, [*, channels].
        """
        return self.drop(self.projection(features))

    def mix(self, rows: Tensor) -> Tensor:
        """Map projected frames [B, T, R] to features [B, T, C], causally."""
        return self.gru(rows)[0].relu()

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Compute the features of all frames of streams.

        Args:
            inputs: ``{modality: features}``, each [B, T, channels] with any
                T >= 1. Other entries are ignored.

        Returns:
            Features, [B, T, C].

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        return self.mix(self.project(
            check_features(inputs, self.in_channels, min_length=1)))

    def dense(self, features: Mapping[str, Tensor], long_indices: Tensor,
              work_indices: Tensor, padding_mask: Tensor | None,
              batch_size: int) -> Tensor:
        """Compute :func:`mmvidattn.online.dense_features`.

        The windows must be consecutive. The features of a window's last frame
        depend on the entire video up to this frame.
        """
        if not work_indices[1:, :-1].equal(work_indices[:-1, 1:]):
            raise ValueError('work_indices must be of consecutive windows, '
                             'each one frame later')
        frames = torch.cat([work_indices[0], work_indices[1:, -1]])
        y = self({name: x[frames][None] for name, x in features.items()})[0]
        return y[work_indices.shape[1] - 1:, None]


class MiniROADStep(StreamStep):
    """Step for streams of :class:`MiniROAD`.

    A stream's memory is the state of the GRU, ``hidden``, [B, layers, C]; and
    ``row``, the last good frame. Sample rates have no effect.
    """

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        gru, zeros = self.model.backbone.gru, self.example.new_zeros
        return dict(
            row=zeros(batch_size, gru.input_size),
            hidden=zeros(batch_size, gru.num_layers, gru.hidden_size))

    def take(self, projected: Mapping[str, Tensor], keep: Tensor,
             step: Tensor, state: dict[str, Tensor]) -> None:
        row = projected['row'].where(keep[:, None], state['row'])
        state['row'].copy_(row)
        self._advance(row, state)

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        for _ in range(number):
            before = state['hidden'].clone()
            self._advance(state['row'], state)
            # The state of the GRU converges.
            if before.equal(state['hidden']):
                break

    def _advance(self, row: Tensor, state: dict[str, Tensor]) -> None:
        gru, hidden = self.model.backbone.gru, []
        for layer, before in enumerate(state['hidden'].unbind(dim=1)):
            row = torch.gru_cell(row, before, *(
                getattr(gru, f'{name}_l{layer}')
                for name in ('weight_ih', 'weight_hh', 'bias_ih', 'bias_hh')))
            hidden.append(row)
        state['hidden'].copy_(torch.stack(hidden, dim=1))

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        return state['hidden'][:, -1:].relu()
