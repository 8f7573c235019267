# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, NotNegative, check_arguments
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class LAPSHead(VideoHead):
    """Head of LAPS: a prediction of each frame, averaged over the clip.

    `Long-term Leap Attention, Short-term Periodic Shift for Video
    Classification <https://arxiv.org/abs/2207.05526>`_, Eq. 5 and 6.

    Args:
        num_classes: Classes K.
        in_channels: Channels of the backbone's features.
        dropout_ratio: Dropout of the frames' features. The released code has
            none.
        average_clips: How the views of a video are averaged: 'score' (the
            logits, as the released code does), 'prob' or None.
        init_std: Standard deviation of the classifier's initialization.
        **kwargs: Of mmaction2's ``BaseHead``.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count,
                 dropout_ratio: Fraction = 0.,
                 average_clips: str | None = 'score',
                 init_std: NotNegative = 0.02,
                 **kwargs) -> None:
        super().__init__(num_classes, in_channels, dropout_ratio,
                         average_clips, init_std, **kwargs)
        self.fc_cls = nn.Linear(in_channels, num_classes)

    def frame_scores(self, x: Tensor) -> Tensor:
        """Logits of each frame.

        Args:
            x: Features of frames, [B, C, T], or of their places,
                [B, C, T, H, W].

        Returns:
            [B, T, num_classes].
        """
        if x.dim() > 3:
            x = x.mean(dim=(3, 4))
        return self.fc_cls(self.dropout(x.transpose(1, 2)))

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Features to logits [B, num_classes], see :meth:`frame_scores`."""
        return self.frame_scores(x).mean(dim=1)
