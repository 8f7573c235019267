# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from .feature_projection import FeatureProjection


class CausalNetwork(BaseModule):
    """A network that reads a stream from its first frame on.

    Each frame goes through a layer with LayerNorm and ReLU (:meth:`project`);
    subclasses mix the rows that this makes (:meth:`mix`), each with those
    before it. A video is read as a whole (:meth:`dense`); training reads
    windows, which know nothing of what came before them.

    Args:
        in_channels: Channels of each modality; they are put side by side in
            this order.
        embed_dims: Channels C of what it makes of a frame in the end.
        proj_dims: Channels R of a row.
        work_memory_length: Frames L of a window.
        drop_rate: Dropout of the rows.
        init_cfg: Of ``BaseModule``.
    """
    # There is neither a long memory nor are there tokens of anticipation.
    long_memory_length = 0
    num_anticipation_tokens = 0

    def __init__(self, in_channels: Mapping[str, int], embed_dims: int,
                 proj_dims: int, work_memory_length: int, drop_rate: float,
                 init_cfg: dict | None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.in_channels = dict(in_channels)
        self.embed_dims = embed_dims
        self.work_memory_length = work_memory_length
        self.projection = FeatureProjection(
            in_channels, proj_dims, with_norm=True)
        self.drop = nn.Dropout(drop_rate)

    def project(self, features: Mapping[str, Tensor]) -> Tensor:
        """Frames to rows: all that is made of a frame by itself.

        Args:
            features: Of each modality, [*, channels].

        Returns:
            [*, R].
        """
        return self.drop(self.projection(features))

    def mix(self, rows: Tensor) -> Tensor:
        """Rows of streams [B, T, R] to features [B, T, C], causally."""
        raise NotImplementedError

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Streams to features of their frames.

        Args:
            inputs: ``{modality: features}``, each [B, T, channels], T being
                any number. Anything else in it is not read.

        Returns:
            [B, T, C].

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        lead = None
        for name, channels in self.in_channels.items():
            x = inputs.get(name)
            got = 'nothing' if x is None else tuple(x.shape)
            if lead is None:
                lead = got[:2] if x is not None else ('B', 'T')
            if got != (*lead, channels) or not x.numel():
                raise ValueError(
                    f'inputs[{name!r}] must be [B, T, channels] = '
                    f'[{lead[0]}, {lead[1]}, {channels}], T at least 1, got '
                    f'{got}')
        return self.mix(self.project(inputs))

    def dense(self, features: Mapping[str, Tensor], long_indices: Tensor,
              work_indices: Tensor, padding_mask: Tensor | None,
              batch_size: int) -> Tensor:
        """See :func:`mmvidattn.online.dense_features`.

        The windows follow each other, each a frame later. What is said of
        a window's last frame is that of the whole video up to this frame.
        """
        if not work_indices[1:, :-1].equal(work_indices[:-1, 1:]):
            raise ValueError('work_indices must be of windows that follow '
                             'each other, each a frame later')
        frames = torch.cat([work_indices[0], work_indices[1:, -1]])
        y = self({name: x[frames][None] for name, x in features.items()})[0]
        return y[work_indices.shape[1] - 1:, None]
