# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, check_arguments
from .base import VideoHead


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
        """Return the logits of each frame.

        Args:
            x: Features of frames, [B, C, T] or [B, C, T, H, W].

        Returns:
            [B, T, K].
        """
        if x.dim() > 3:
            x = x.mean(dim=(3, 4))
        return self.fc_cls(self.dropout(x.transpose(1, 2)))

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Map features, as in :meth:`frame_scores`, to logits [B, K]."""
        return self.frame_scores(x).mean(dim=1)
