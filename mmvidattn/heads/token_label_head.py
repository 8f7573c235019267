# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.models.heads import I3DHead
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments


@MODELS.register_module()
@check_arguments
class TokenLabelHead(I3DHead):
    """``I3DHead`` with a second branch that classifies every token.

    This is the head of `DualFormer <https://arxiv.org/abs/2112.04674>`_, Sec.
    B.1, as released. The second branch is only used in training, by
    :class:`mmvidattn.recognizers.TokenLabelRecognizer3D`.

    Differs from the paper: the token branch has three linear layers (the
    token labeling that the paper cites has one).

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the features.
        gamma: Weight of the clip loss; the token loss has weight 1 - gamma.
            Defaults to 0.5.
        loss_token: Config of the token loss. Defaults to ``TokenLabelLoss``.
        token_dropout_ratio: Dropout after the first two layers of the token
            branch. Defaults to 0.5.
        dropout_ratio: Dropout of the pooled features. Defaults to 0.5.
        average_clips: How to average the views of a video: 'prob', 'score' or
            None. Defaults to 'prob'.
        **kwargs: Arguments of mmaction2's ``I3DHead``.
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
            num_classes, in_channels, dropout_ratio=dropout_ratio,
            average_clips=average_clips, **kwargs)
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
        """Map features [B, C, T, H, W] to token logits [B, T, H, W, K]."""
        return self.token_linear(x.movedim(1, -1))

    def loss(self,
             feats: Tensor,
             data_samples: list,
             token_labels: Tensor | None = None,
             **kwargs) -> dict[str, Tensor]:
        """Compute the losses of clips and tokens.

        Args:
            feats: Features, [B, C, T, H, W].
            data_samples: Samples with the labels of the clips.
            token_labels: Distributions, [B, T, H, W, K].

        Raises:
            ValueError: If ``token_labels`` is None.
        """
        if token_labels is None:
            raise ValueError(
                'TokenLabelHead needs token_labels, which '
                'TokenLabelRecognizer3D computes in training; got None')
        losses = self.loss_by_feat(self(feats), data_samples)
        losses['loss_cls'] = self.gamma * losses['loss_cls']
        token_loss = self.loss_token(self.forward_tokens(feats), token_labels)
        losses['loss_token'] = (1 - self.gamma) * token_loss
        return losses


def classify_tokens(head: nn.Module, x: Tensor) -> Tensor:
    """Map features [B, C, T, H, W] to logits of tokens [B, T, H, W, K].

    ``head`` pools before it classifies. It has ``fc_cls``, and ``dropout`` or
    None, such as ``I3DHead``.
    """
    x = torch.movedim(x, 1, -1)
    dropout = getattr(head, 'dropout', None)
    return head.fc_cls(x if dropout is None else dropout(x))
