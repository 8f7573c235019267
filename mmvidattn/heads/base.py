# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
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
        **kwargs: Arguments of mmaction2's ``BaseHead``.
    """

    def __init__(self, num_classes: Count, in_channels: Count,
                 dropout_ratio: Fraction = 0.,
                 average_clips: str | None = 'score',
                 init_std: NotNegative = 0.02, **kwargs) -> None:
        super().__init__(
            num_classes, in_channels, average_clips=average_clips, **kwargs)
        self.init_std = init_std
        self.dropout = nn.Dropout(dropout_ratio)

    def average_clip(self, cls_scores: Tensor, num_segs: int = 1) -> Tensor:
        """Average scores of views [B * num_segs, K] to videos [B, K]."""
        if self.average_clips == 'max':
            return cls_scores.unflatten(0, (-1, num_segs)).amax(dim=1)
        return super().average_clip(cls_scores, num_segs)

    def init_weights(self) -> None:
        initialize(self, self.init_std)
