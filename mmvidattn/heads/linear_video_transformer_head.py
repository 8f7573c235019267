# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, NotNegative, check_arguments
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class LinearVideoTransformerHead(VideoHead):
    """Head of the linear video transformer: pool all tokens, then an MLP.

    The released code's: dropout of token features, mean over space and time,
    LayerNorm, a hidden layer with GELU, dropout, the classifier.

    Args:
        num_classes: Classes K.
        in_channels: Channels of the backbone's features.
        hidden_dims: Width of the hidden layer.
        dropout_ratio: Dropout of the token features and of the hidden layer.
        average_clips: How the views of a video are averaged: 'score' (the
            logits, as the released code does), 'prob', 'max' (the largest
            logit) or None.
        init_std: Standard deviation of the linear layers' initialization.
        **kwargs: Of mmaction2's ``BaseHead``.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 512,
                 hidden_dims: Count = 768,
                 dropout_ratio: Fraction = 0.5,
                 average_clips: str | None = 'score',
                 init_std: NotNegative = 0.02,
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, dropout_ratio,
                         average_clips, init_std, **kwargs)
        self.norm = nn.LayerNorm(in_channels)
        self.fc_hidden = nn.Linear(in_channels, hidden_dims)
        self.fc_cls = nn.Linear(hidden_dims, num_classes)

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Features [B, C, T, H, W] to logits [B, num_classes]."""
        x = self.norm(self.dropout(x).mean(dim=(2, 3, 4)))
        x = self.dropout(F.gelu(self.fc_hidden(x)))
        return self.fc_cls(x)
