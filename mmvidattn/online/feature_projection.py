# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class FeatureProjection(nn.Module):
    """Linear layer and ReLU on the concatenated features of all modalities.

    Args:
        in_channels: Channels of each modality, in order.
        embed_dims: Channels C of a token.
        drop_rate: Dropout rate of the features. Defaults to 0.
        with_norm: Add LayerNorm between layer and ReLU. Defaults to False.
    """

    def __init__(self,
                 in_channels: Mapping[str, int],
                 embed_dims: int,
                 drop_rate: float = 0.,
                 with_norm: bool = False) -> None:
        super().__init__()
        self.in_channels = dict(in_channels)
        self.drop = nn.Dropout(drop_rate)
        self.projection = nn.Linear(
            sum(self.in_channels.values()), embed_dims)
        self.norm = nn.LayerNorm(embed_dims) if with_norm else nn.Identity()

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        """Map modalities [*, T, channels] to tokens [*, T, C]."""
        x = torch.cat([features[name] for name in self.in_channels], dim=-1)
        return self.norm(self.projection(self.drop(x))).relu()
