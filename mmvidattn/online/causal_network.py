# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from .feature_projection import FeatureProjection
from .window_inputs import check_features


class CausalNetwork(BaseModule):
    """Base class of causal networks that read a stream from its first frame.

    A linear layer with LayerNorm and ReLU projects each frame
    (:meth:`project`). Subclasses mix each projected frame with earlier frames
    (:meth:`mix`). Evaluation reads an entire video (:meth:`dense`). Training
    reads windows, without earlier frames.

    Args:
        in_channels: Channels of each modality, which are concatenated in this
            order.
        embed_dims: Channels C of the features.
        proj_dims: Channels R of a projected frame.
        work_memory_length: Frames L in a window.
        drop_rate: Dropout rate of projected frames.
        init_cfg: ``init_cfg`` of ``BaseModule``.
    """
    # No long memory, no anticipation tokens.
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
        """Project each frame by itself.

        Args:
            features: Features of each modality, [*, channels].

        Returns:
            Projected frames, [*, R].
        """
        return self.drop(self.projection(features))

    def mix(self, rows: Tensor) -> Tensor:
        """Map projected frames [B, T, R] to features [B, T, C], causally."""
        raise NotImplementedError

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
