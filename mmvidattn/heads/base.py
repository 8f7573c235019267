# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmaction.models.heads import BaseHead
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, NotNegative, check_arguments
from ..utils.modules import initialize


@check_arguments
class VideoHead(BaseHead):
    """Base class of heads: dropout, averaging of views, and initialization.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features.
        dropout_ratio: Dropout of the features. Defaults to 0.
        average_clips: Averaging of the views of a video: 'score' (mean of
            logits, like the released code), 'prob' (mean of probabilities),
            'max' (the largest logit of each class, as released for Charades)
            or None. Defaults to 'score'.
        init_std: Standard deviation of the linear layers at initialization.
            Defaults to 0.02.
        parts: Number of classes of each part of the scores, such as
            ``dict(noun=300, verb=97)``; their sum is ``num_classes``. A label
            is a vector with a 1 for each part (``multi_class`` of the
            dataset), or fractional after blending, and the loss is the mean of
            the parts' losses. Defaults to None: each label is one class.
        **kwargs: Arguments of mmaction2's ``BaseHead``.
    """

    def __init__(self, num_classes: Count, in_channels: Count,
                 dropout_ratio: Fraction = 0.,
                 average_clips: str | None = 'score',
                 init_std: NotNegative = 0.02,
                 parts: Mapping[str, Count] | None = None, **kwargs) -> None:
        super().__init__(
            num_classes, in_channels, average_clips=average_clips, **kwargs)
        if parts is not None and sum(parts.values()) != num_classes:
            raise ValueError(f'num_classes must be the sum of parts, '
                             f'{sum(parts.values())}, got {num_classes}')
        self.parts = parts and dict(parts)
        self.init_std = init_std
        self.dropout = nn.Dropout(dropout_ratio)

    def average_clip(self, cls_scores: Tensor, num_segs: int = 1) -> Tensor:
        """Average scores of views [B * num_segs, K] to videos [B, K]."""
        if self.average_clips == 'max':
            return cls_scores.unflatten(0, (-1, num_segs)).amax(dim=1)
        average = super().average_clip
        if self.average_clips != 'prob' or self.parts is None:
            return average(cls_scores, num_segs)
        return torch.cat([average(score, num_segs)
                          for _, score in self.split(cls_scores)], dim=-1)

    def loss_by_feat(self, cls_scores: Tensor, data_samples: list) -> dict:
        """Compute losses and accuracies, by name, of logits [B, K]."""
        if self.parts is None:
            return super().loss_by_feat(cls_scores, data_samples)
        labels = torch.stack([x.gt_label for x in data_samples])
        if labels.shape != cls_scores.shape:
            raise ValueError(
                f'labels must be {tuple(cls_scores.shape)}, a one for each of '
                f'{", ".join(self.parts)} (multi_class=True of the dataset), '
                f'got {tuple(labels.shape)}')
        losses = {}
        for name, score, label in self.split(cls_scores,
                                             labels.to(cls_scores)):
            hit = score.argmax(-1) == label.argmax(-1)
            losses[f'{name}_top1_acc'] = hit.float().mean()
            label = (1 - self.label_smooth_eps) * label + (
                self.label_smooth_eps / label.shape[-1])
            losses[f'loss_{name}'] = self.loss_cls(score, label) / len(
                self.parts)
        return losses

    def split(self, *tensors: Tensor) -> list[tuple]:
        """Split classes: ('noun', [*, 300], ...), ('verb', [*, 97], ...)."""
        parts = (t.split(tuple(self.parts.values()), -1) for t in tensors)
        return list(zip(self.parts, *parts))

    def init_weights(self) -> None:
        initialize(self, self.init_std)
