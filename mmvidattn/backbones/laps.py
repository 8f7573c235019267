# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""LAPS: leap attention and periodic shift for a network of frames.

Paper: *Long-term Leap Attention, Short-term Periodic Shift for Video
Classification*, https://arxiv.org/abs/2207.05526. Authors' code:
https://github.com/VideoNetworks/LAPS-transformer. The networks are in
``visformer.py``, ``rest.py`` and ``vit.py``; ``inflated.py`` does the same to
networks of timm and mmpretrain.
"""
from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from ..layers.temporal import FrameMixing
from ..utils.arguments import Count, Fraction, check_arguments
from .base import BaseBackbone

Attention = Literal['2d', '3d', 'leap']
# The shifts that make sense without class tokens.
Shift = Literal['none', 'plain', 'periodic']
TokenShift = Literal['none', 'plain', 'periodic', 'token']
First = Literal['next', 'previous']


@check_arguments
class LAPSBackbone(BaseBackbone):
    """A network of frames whose attentions reach other frames.

    A subclass is a network of images whose attentions take their
    :class:`mmvidattn.layers.temporal.FrameMixing` from :meth:`mixing`.

    Args:
        num_frames: Frames T of a clip.
        attention: '2d', '3d' or 'leap'.
        shift: 'none', 'plain', 'periodic' or, with class tokens, 'token'.
        pyramid: Levels R of leap attention; the i-th attention has the i-th,
            over again.
        shift_fraction: Fraction of the channels that a shift takes from
            either side.
        shift_first: Where the first part comes from, the 'next' or the
            'previous' frame.
        **kwargs: See :class:`BaseBackbone`.
    """
    def __init__(self, num_frames: Count, attention: Attention,
                 shift: TokenShift, pyramid: Sequence[Count],
                 shift_fraction: Fraction, shift_first: First,
                 **kwargs) -> None:
        super().__init__(num_frames, **kwargs)
        if not pyramid:
            raise ValueError('pyramid must have at least one level, got '
                             f'{pyramid!r}')
        self.attention = attention
        self.shift = shift
        self.pyramid = tuple(pyramid)
        self.shift_fraction = shift_fraction
        self.shift_first = shift_first

    @property
    def mixes_frames(self) -> bool:
        """Whether anything of a frame reaches another one."""
        return self.attention != '2d' or self.shift != 'none'

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Single frames."""
        self.check_length(num_frames)
        return [(i, ) for i in range(num_frames)]

    def encode_frames(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to maps or tokens of frames, [B, T, *].

        They are what comes before the first attention that reaches other
        frames, or all of the network if there is none; it has no positions
        in time.
        """
        frames = self.encode_images(x.transpose(1, 2).flatten(0, 1))
        return frames.unflatten(0, (x.shape[0], x.shape[2]))

    def encode_images(self, x: Tensor) -> Tensor:
        """Frames [B T, C, H, W] to their encodings, [B T, *]."""
        raise NotImplementedError

    def mixing(self, index: int) -> FrameMixing:
        """Make the mixing of the attention number ``index``."""
        return FrameMixing(self.num_frames, self.attention,
                           self.pyramid[index % len(self.pyramid)],
                           self.shift, self.shift_fraction, self.shift_first)

    def _init_tables(self) -> None:
        for name in (*self.position_grids, 'cls_token'):
            if hasattr(self, name):
                nn.init.trunc_normal_(getattr(self, name), std=self.init_std)
