# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.models.heads import I3DHead
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments


@MODELS.register_module()
@check_arguments
class TokenLabelHead(I3DHead):
    """An ``I3DHead`` with a second branch that classifies every token.

    Of `DualFormer <https://arxiv.org/abs/2112.04674>`_, Sec. B.1, as
    released. The second branch serves in training alone, in a
    :class:`mmvidattn.recognizers.TokenLabelRecognizer3D`.

    Differs from the paper: three linear layers of a token (the token
    labeling that it cites has one).

    Args:
        num_classes: Classes K.
        in_channels: Channels C of the features.
        gamma: Share of the clip's loss; the tokens' has the rest.
        loss_token: Config of the tokens' loss.
        token_dropout_ratio: Dropout after the first two layers of the token
            branch.
        dropout_ratio: Dropout of the pooled features.
        average_clips: How the views of a video are averaged: 'prob', 'score'
            or None.
        **kwargs: Of mmaction2's ``I3DHead``.

    Raises:
        ValueError: If a number is out of its range.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count,
                 gamma: Fraction = 0.5,
                 loss_token: dict = dict(type='TokenLabelLoss'),
                 token_dropout_ratio: Fraction = 0.5,
                 dropout_ratio: Fraction = 0.5,
                 average_clips: str | None = 'prob',
                 **kwargs) -> None:
        super().__init__(
            num_classes,
            in_channels,
            dropout_ratio=dropout_ratio,
            average_clips=average_clips,
            **kwargs)
        self.gamma = gamma
        self.loss_token = MODELS.build(loss_token)
        widths = in_channels, 2 * in_channels, 4 * in_channels, num_classes
        layers = []
        for before, after in zip(widths, widths[1:]):
            layers += [
                nn.Linear(before, after),
                nn.Dropout(token_dropout_ratio),
                nn.ReLU()
            ]
        self.token_linear = nn.Sequential(*layers[:-2])

    def forward_tokens(self, x: Tensor) -> Tensor:
        """Features [B, C, T, H, W] to logits of each token [B, T, H, W, K]."""
        return self.token_linear(x.movedim(1, -1))

    def loss(self,
             feats: Tensor,
             data_samples: list,
             token_labels: Tensor | None = None,
             **kwargs) -> dict[str, Tensor]:
        """The losses of the clips and of their tokens.

        Args:
            feats: [B, C, T, H, W].
            data_samples: With the labels of the clips.
            token_labels: Distributions, [B, T, H, W, K].

        Raises:
            ValueError: If there are no token labels.
        """
        if token_labels is None:
            raise ValueError(
                'TokenLabelHead is trained within TokenLabelRecognizer3D, '
                'which gives it the token_labels; got none')
        losses = self.loss_by_feat(self(feats), data_samples)
        losses['loss_cls'] = self.gamma * losses['loss_cls']
        token_loss = self.loss_token(self.forward_tokens(feats), token_labels)
        losses['loss_token'] = (1 - self.gamma) * token_loss
        return losses


def classify_tokens(head: nn.Module, x: Tensor) -> Tensor:
    """Logits of every token by a head that pools, then classifies.

    Args:
        head: With ``dropout`` (or None) and ``fc_cls``, such as
            ``I3DHead``.
        x: Features, [B, C, T, H, W].

    Returns:
        [B, T, H, W, K].
    """
    x = torch.movedim(x, 1, -1)
    dropout = getattr(head, 'dropout', None)
    return head.fc_cls(x if dropout is None else dropout(x))
