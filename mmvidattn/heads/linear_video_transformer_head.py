# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class LinearVideoTransformerHead(VideoHead):
    """Head of the linear video transformer: average pooling and an MLP.

    As in the released code: dropout of token features, mean over space and
    time, LayerNorm, a hidden layer with GELU, dropout, the classifier.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features. Defaults to 512.
        hidden_dims: Width of the hidden layer. Defaults to 768.
        dropout_ratio: Dropout of the token features and of the hidden layer.
            Defaults to 0.5.
        pooling: 'mean' averages the tokens of all frames, 'last' averages the
            tokens of the last frame, which in a causal network depends on all
            frames. Defaults to 'mean'.
        **kwargs: Arguments of :class:`~mmvidattn.heads.base.VideoHead`.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 512,
                 hidden_dims: Count = 768,
                 dropout_ratio: Fraction = 0.5,
                 pooling: Literal['mean', 'last'] = 'mean',
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, dropout_ratio, **kwargs)
        self.pooling = pooling
        self.norm = nn.LayerNorm(in_channels)
        self.fc_hidden = nn.Linear(in_channels, hidden_dims)
        self.fc_cls = nn.Linear(hidden_dims, num_classes)

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Map features [B, C, T, H, W] to logits [B, K]."""
        if self.pooling == 'last':
            x = x[:, :, -1:]
        x = self.norm(self.dropout(x).mean(dim=(2, 3, 4)))
        x = self.dropout(F.gelu(self.fc_hidden(x)))
        return self.fc_cls(x)
