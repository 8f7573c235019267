# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import MLP, VideoSelfAttention, VideoTransformerBlock
from ..layers.video_transformer_block import rescale_blocks
from ..ops import softmax_attention
from ..utils.arguments import Count, Positive, check_arguments, check_divides
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class AttentiveHead(VideoHead):
    """Attentive probe of V-JEPA 2: self-attention, a query and a classifier.

    As in the released code of `V-JEPA 2 <https://arxiv.org/abs/2506.09985>`_:
    blocks of self-attention over all tokens of a clip, a block in which a
    learned query attends to the tokens, and a linear layer. With ``parts``,
    such as ``dict(noun=300, verb=97, action=3806)``, each part has a query
    and a classifier.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features. Defaults to 1024.
        num_heads: Number of heads. Defaults to 16.
        num_layers: Number of blocks, including the block of the query.
            Defaults to 4.
        norm_eps: Added to the variance in LayerNorm. Defaults to 1e-5, as
            released; transformers uses 1e-6.
        **kwargs: Arguments of :class:`~mmvidattn.heads.base.VideoHead`.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 1024,
                 num_heads: Count = 16,
                 num_layers: Count = 4,
                 norm_eps: Positive = 1e-5,
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, **kwargs)
        check_divides(num_heads=num_heads, in_channels=in_channels)
        self.num_heads = num_heads
        # Softmax attention has no table for the grid.
        self.blocks = nn.ModuleList(
            VideoTransformerBlock(
                dict(attn=VideoSelfAttention(
                    in_channels, num_heads, dict(type='SoftmaxAttention'),
                    grid_shape=(1, 1, 1))),
                MLP(in_channels, 4 * in_channels), in_channels, eps=norm_eps)
            for _ in range(num_layers - 1))
        sizes = self.parts or dict(cls=num_classes)
        self.query_tokens = nn.Parameter(
            torch.zeros(1, len(sizes), in_channels))
        self.cross_norm = nn.LayerNorm(in_channels, eps=norm_eps)
        self.query = nn.Linear(in_channels, in_channels)
        self.key_value = nn.Linear(in_channels, 2 * in_channels)
        self.mlp_norm = nn.LayerNorm(in_channels, eps=norm_eps)
        self.mlp = MLP(in_channels, 4 * in_channels)
        self.classifiers = [f'fc_{name}' for name in sizes]
        for name, size in zip(self.classifiers, sizes.values()):
            self.add_module(name, nn.Linear(in_channels, size))

    def init_weights(self) -> None:
        super().init_weights()
        nn.init.trunc_normal_(self.query_tokens, std=self.init_std)
        rescale_blocks(self.blocks)
        with torch.no_grad():
            self.mlp.fc2.weight /= math.sqrt(2 * max(len(self.blocks), 1))

    def pool(self, x: Tensor) -> Tensor:
        """Pool features [B, C, T, H, W] to one vector per part, [B, parts, C].
        """
        x = x.movedim(1, -1)
        for block in self.blocks:
            x = block(x)
        x = self.cross_norm(x.flatten(1, 3))
        k, v = self.key_value(x).unflatten(
            -1, (2, self.num_heads, -1)).unbind(-3)
        queries = self.query_tokens.expand(x.shape[0], -1, -1)
        q = self.query(queries).unflatten(-1, (self.num_heads, -1))
        queries = queries + softmax_attention(q, k, v).flatten(-2)
        return queries + self.mlp(self.mlp_norm(queries))

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Map features [B, C, T, H, W] to logits [B, K]."""
        pooled = self.dropout(self.pool(x)).unbind(1)
        return torch.cat([getattr(self, name)(y) for name, y in zip(
            self.classifiers, pooled)], dim=-1)
