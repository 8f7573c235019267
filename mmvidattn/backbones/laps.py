# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""LAPS: leap attention and periodic shift for image networks.

Paper: *Long-term Leap Attention, Short-term Periodic Shift for Video
Classification*, https://arxiv.org/abs/2207.05526. Authors' code:
https://github.com/VideoNetworks/LAPS-transformer. The networks are in
``visformer.py``, ``rest.py`` and ``vit.py``; ``inflated.py`` adds LAPS to
networks of timm and mmpretrain.
"""
from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from ..layers.temporal import FrameMixing
from ..utils.arguments import Count, Fraction, check_arguments
from .base import BaseBackbone

Attention = Literal['2d', '3d', 'leap']
# The attention of all layers or by layer, see
# :func:`mmvidattn.layers.video_transformer_block.attention_of_layers`.
Attentions = Attention | Sequence[Attention] | dict
# Shifts for networks without class tokens.
Shift = Literal['none', 'plain', 'periodic']
TokenShift = Literal['none', 'plain', 'periodic', 'token']
First = Literal['next', 'previous']


@check_arguments
class LAPSBackbone(BaseBackbone):
    """Base class of image networks whose attentions include other frames.

    The attentions of a subclass get their
    :class:`mmvidattn.layers.temporal.FrameMixing` from :meth:`mixing`.

    Args:
        num_frames: Clip length T.
        shift: 'none', 'plain', 'periodic' or, with class tokens, 'token'.
        pyramid: Levels R of leap attention, repeated over the attentions.
        shift_fraction, shift_first: See
            :class:`mmvidattn.layers.temporal.FrameMixing`.
        **kwargs: See :class:`BaseBackbone`; ``init_std`` also applies to class
            tokens and position tables.

    Raises:
        ValueError: If the frames form no pairs at a level of the pyramid.
    """

    def __init__(self, num_frames: Count, shift: TokenShift,
                 pyramid: Sequence[Count], shift_fraction: Fraction,
                 shift_first: First, **kwargs) -> None:
        super().__init__(num_frames, **kwargs)
        if not pyramid:
            raise ValueError('pyramid must have at least one level, got '
                             f'{pyramid!r}')
        # True if attention or shift connects frames.
        self.mixes_frames = shift != 'none'
        self.shift = shift
        self.pyramid = tuple(pyramid)
        self.shift_fraction = shift_fraction
        self.shift_first = shift_first

    def encode_frames(self, x: Tensor) -> Tensor:
        """Encode the frames of clips [B, C, T, H, W] to [B, T, *].

        Runs all layers before the first attention across frames, or the whole
        network if there is none; the network has no positions in time.
        """
        frames = self.encode_images(x.transpose(1, 2).flatten(0, 1))
        return frames.unflatten(0, (x.shape[0], x.shape[2]))

    def encode_images(self, x: Tensor) -> Tensor:
        """Encode frames [B T, C, H, W] to [B T, *]."""
        raise NotImplementedError

    def mixing(self, attention: Attention, index: int) -> FrameMixing:
        """Return a frame mixing of level ``index`` in the pyramid."""
        self.mixes_frames |= attention != '2d'
        return FrameMixing(self.num_frames, attention,
                           self.pyramid[index % len(self.pyramid)],
                           self.shift, self.shift_fraction, self.shift_first)

    def _init_tables(self) -> None:
        for name in (*self.position_grids, 'cls_token'):
            if hasattr(self, name):
                nn.init.trunc_normal_(getattr(self, name), std=self.init_std)
