# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Heads of the networks for clips, by paper."""
from typing import Literal

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
            in_channels, num_heads, dict(type='SoftmaxAttention'),
            grid_shape=(1, 1, 1), pattern='time', qkv_bias=False)
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


@MODELS.register_module()
@check_arguments
class ViViTHead(VideoHead):
    """Head of ViViT: a linear classifier, initialized with zeros.

    This is the classifier of `ViViT: A Video Vision Transformer
    <https://arxiv.org/abs/2103.15691>`_.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features. Defaults to 768.
        init_std: Standard deviation of the classifier at initialization.
            Defaults to 0, as released; the backbone then does not learn in
            the first step.
        **kwargs: Arguments of :class:`~mmvidattn.heads.base.VideoHead`.
    """

    def __init__(self, num_classes: Count, in_channels: Count = 768,
                 init_std: NotNegative = 0., **kwargs) -> None:
        super().__init__(num_classes, in_channels, init_std=init_std, **kwargs)
        self.fc_cls = nn.Linear(in_channels, num_classes)

    def init_weights(self) -> None:
        nn.init.normal_(self.fc_cls.weight, std=self.init_std)
        nn.init.zeros_(self.fc_cls.bias)

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Map features [B, C] to logits [B, K]."""
        return self.fc_cls(self.dropout(x))


@MODELS.register_module()
@check_arguments
class VerbNounHead(ViViTHead):
    """Head for EPIC-Kitchens, with one linear layer for nouns and verbs.

    As in the released code, the logits of nouns come before the logits of
    verbs, and the loss is the mean of the noun loss and the verb loss. A label
    vector is 1 for the noun and 1 for the verb (``multi_class`` of the
    dataset), or fractional after blending.

    Args:
        num_nouns: Number of noun classes. Defaults to 300.
        num_verbs: Number of verb classes. Defaults to 97.
        num_classes: Must be ``num_nouns + num_verbs``, the default.
        **kwargs: Arguments of :class:`ViViTHead`.
    """

    def __init__(self, num_nouns: Count = 300, num_verbs: Count = 97,
                 num_classes: Count | None = None, **kwargs) -> None:
        if num_classes not in (None, num_nouns + num_verbs):
            raise ValueError(f'num_classes must be num_nouns + num_verbs = '
                             f'{num_nouns + num_verbs}, got {num_classes}')
        super().__init__(
            num_nouns + num_verbs,
            parts=dict(noun=num_nouns, verb=num_verbs), **kwargs)


@MODELS.register_module()
@check_arguments
class LAPSHead(VideoHead):
    """Head of LAPS, which averages the predictions of all frames of a clip.

    This is the head of `Long-term Leap Attention, Short-term Periodic Shift
    for Video Classification <https://arxiv.org/abs/2207.05526>`_, Eqs. 5 and
    6.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features.
        **kwargs: Arguments of :class:`~mmvidattn.heads.base.VideoHead`.
    """

    def __init__(self, num_classes: Count, in_channels: Count,
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, **kwargs)
        self.fc_cls = nn.Linear(in_channels, num_classes)

    def frame_scores(self, x: Tensor) -> Tensor:
        """Map features [B, C, T] or [B, C, T, H, W] to logits [B, T, K]."""
        if x.dim() > 3:
            x = x.mean(dim=(3, 4))
        return self.fc_cls(self.dropout(x.transpose(1, 2)))

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Map features, as in :meth:`frame_scores`, to logits [B, K]."""
        return self.frame_scores(x).mean(dim=1)
