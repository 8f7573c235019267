# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.models.heads import BaseHead
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, NotNegative, check_arguments
from ..utils.initialize import initialize


@check_arguments
class VideoHead(BaseHead):
    """Dropout, the averaging of views and the initialization of our heads.

    Args:
        num_classes: Classes K.
        in_channels: Channels of the backbone's features.
        dropout_ratio: Dropout of the features.
        average_clips: How the views of a video are averaged: 'score' (the
            logits, as the released codes do), 'prob', 'max' (of each class's
            logits the largest, as released for Charades) or None.
        init_std: Standard deviation of the linear layers' initialization.
        **kwargs: Of mmaction2's ``BaseHead``.

    Raises:
        ValueError: If a number is out of its range.
    """

    def __init__(self, num_classes: Count, in_channels: Count,
                 dropout_ratio: Fraction, average_clips: str | None,
                 init_std: NotNegative, **kwargs) -> None:
        super().__init__(
            num_classes, in_channels, average_clips=average_clips, **kwargs)
        self.init_std = init_std
        self.dropout = nn.Dropout(dropout_ratio)

    def average_clip(self, cls_scores: Tensor, num_segs: int = 1) -> Tensor:
        """Views' scores [B * num_segs, K] to videos' [B, K]."""
        if self.average_clips == 'max':
            return cls_scores.unflatten(0, (-1, num_segs)).amax(dim=1)
        return super().average_clip(cls_scores, num_segs)

    def init_weights(self) -> None:
        initialize(self, self.init_std)
