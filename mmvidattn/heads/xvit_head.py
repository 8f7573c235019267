# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import MLP, VideoSelfAttention, VideoTransformerBlock
from ..utils.arguments import Count, Fraction, Positive, check_arguments
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class XViTHead(VideoHead):
    """Head of XViT: attention over the frame tokens of a clip, and an MLP.

    The head of `Space-time Mixing Attention for Video Transformer
    <https://arxiv.org/abs/2106.05968>`_ applies dropout to the frame tokens,
    adds a class token in front of them, and runs a transformer block with
    softmax attention. LayerNorm, a hidden layer with GELU, dropout and the
    classifier then process the class token. The head lacks position
    embeddings, so clips may have any length.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features. Defaults to 768.
        num_heads: Heads of the attention over time. Defaults to 12.
        mlp_ratio: Hidden channels of the block's MLP, as a multiple of
            ``in_channels``. Defaults to 4.
        hidden_dims: Width of the hidden layer. Defaults to 768.
        dropout_ratio: Dropout of the frame tokens and of the hidden layer.
            Defaults to 0.5.
        **kwargs: Arguments of :class:`~mmvidattn.heads.base.VideoHead`.
            ``init_std`` also applies to the class token.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 768,
                 num_heads: Count = 12,
                 mlp_ratio: Positive = 4,
                 hidden_dims: Count = 768,
                 dropout_ratio: Fraction = 0.5,
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, dropout_ratio, **kwargs)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, in_channels))
        # The grid shape has no effect, because softmax attention has no table
        # of positions.
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
        """Map frame features [B, C, T] to logits [B, K]."""
        x = self.dropout(x.transpose(1, 2))
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.block(x[:, :, None, None])[:, 0, 0, 0]
        x = self.dropout(F.gelu(self.fc_hidden(self.norm(x))))
        return self.fc_cls(x)
