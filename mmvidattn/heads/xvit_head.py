# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import MLP, VideoSelfAttention, VideoTransformerBlock
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
)
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class XViTHead(VideoHead):
    """Head of XViT: the frames' class tokens attend over time, then an MLP.

    `Space-time Mixing Attention for Video Transformer
    <https://arxiv.org/abs/2106.05968>`_. Dropout of the frames' tokens, a
    class token of the clip in front of them, a transformer block of softmax
    attention, and from the clip's token LayerNorm, a hidden layer with GELU,
    dropout, the classifier. It takes clips of any length: the frames have no
    positions here.

    Args:
        num_classes: Classes K.
        in_channels: Channels of the backbone's features.
        num_heads: Heads of the attention over time.
        mlp_ratio: Hidden channels of the block's MLP, in in_channels.
        hidden_dims: Width of the hidden layer.
        dropout_ratio: Dropout of the frames' tokens and of the hidden layer.
        average_clips: How the views of a video are averaged: 'score' (the
            logits, as the released code does), 'prob' or None.
        init_std: Standard deviation of the initialization of the linear
            layers and the class token.
        **kwargs: Of mmaction2's ``BaseHead``.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 768,
                 num_heads: Count = 12,
                 mlp_ratio: Positive = 4,
                 hidden_dims: Count = 768,
                 dropout_ratio: Fraction = 0.5,
                 average_clips: str | None = 'score',
                 init_std: NotNegative = 0.02,
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, dropout_ratio,
                         average_clips, init_std, **kwargs)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, in_channels))
        # Softmax attention has no tables that the frames would have to fit.
        attn = VideoSelfAttention(
            in_channels,
            num_heads,
            dict(type='SoftmaxAttention'),
            grid_shape=(1, 1, 1),
            pattern='time',
            qkv_bias=False)
        mlp = MLP(in_channels, int(mlp_ratio * in_channels))
        self.block = VideoTransformerBlock(
            dict(attn=attn), mlp, in_channels, eps=1e-5)
        self.norm = nn.LayerNorm(in_channels)
        self.fc_hidden = nn.Linear(in_channels, hidden_dims)
        self.fc_cls = nn.Linear(hidden_dims, num_classes)

    def init_weights(self) -> None:
        nn.init.normal_(self.cls_token, std=self.init_std)
        super().init_weights()

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Frame features [B, C, T] to logits [B, num_classes]."""
        x = self.dropout(x.transpose(1, 2))
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.block(x[:, :, None, None])[:, 0, 0, 0]
        x = self.dropout(F.gelu(self.fc_hidden(self.norm(x))))
        return self.fc_cls(x)
