# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ...ops.leap import leap_pair, leap_step, leap_unpair
from ...ops.periodic_shift import (
    FIRST,
    periodic_shift,
    plain_shift,
    token_shift,
)

ATTENTIONS = '2d', '3d', 'leap'
SHIFTS = 'none', 'plain', 'periodic', 'token'


class FrameMixing(nn.Module):
    """Reach of an attention over a frame's tokens to other frames.

    It has no parameters. Attention that treats its tokens alike becomes leap
    or 3D attention when the tokens of several frames stand in one sequence:
    :meth:`join` puts them there, :meth:`part` takes them apart again. The
    shift then exchanges channels of the attention's output between neighbors
    in time.

    Args:
        num_frames: Frames T of a clip.
        attention: '2d' (a frame's tokens), 'leap' (those of two frames
            T / 2^level apart), '3d' (all tokens).
        level: Pyramid level R of leap attention, from 1.
        shift: 'none', 'plain', 'periodic', or 'token', which is none here:
            it is of the residual stream, see :meth:`shift_tokens`.
        fraction: Part of the channels that a shift takes from either side.
        first: Where the first part comes from, 'next' or 'previous' frame.

    Raises:
        ValueError: If an argument is not one of these, or the frames form no
            pairs at this level.
    """

    def __init__(self,
                 num_frames: int,
                 attention: str = 'leap',
                 level: int = 1,
                 shift: str = 'periodic',
                 fraction: float = 0.25,
                 first: str = 'next') -> None:
        super().__init__()
        for name, value, allowed in (('attention', attention, ATTENTIONS),
                                     ('shift', shift, SHIFTS),
                                     ('shift_first', first, FIRST)):
            if value not in allowed:
                raise ValueError(
                    f'{name} must be one of {allowed}, got {value!r}')
        if not 0 <= fraction <= 0.5:
            raise ValueError(
                f'shift_fraction must be in [0, 1/2], got {fraction}')
        if attention == 'leap':
            leap_step(num_frames, level)
        self.num_frames = num_frames
        self.attention = attention
        self.level = level
        self.shift = shift
        self.fraction = fraction
        self.first = first

    def join(self, x: Tensor) -> Tensor:
        """Tokens of frames, [B T, N, *], to the sequences of the attention.

        Returns:
            [B T / n, n N, *] for n frames a sequence: 1, 2 or T.

        Raises:
            ValueError: If there is no whole number of clips.
        """
        if self.attention == '2d':
            return x
        x = self._clips(x)
        if self.attention == '3d':
            return x.flatten(1, 2)
        return leap_pair(x, self.level)

    def part(self, x: Tensor) -> Tensor:
        """The inverse of :meth:`join`."""
        if self.attention == '2d':
            return x
        if self.attention == '3d':
            return x.unflatten(1, (self.num_frames, -1)).flatten(0, 1)
        return leap_unpair(x, self.level, self.num_frames).flatten(0, 1)

    def shift_heads(self, x: Tensor) -> Tensor:
        """The attention's output, [B T, N, G, D], with channels exchanged."""
        if self.shift not in ('plain', 'periodic'):
            return x
        shift = plain_shift if self.shift == 'plain' else periodic_shift
        return shift(self._clips(x), self.fraction, self.first).flatten(0, 1)

    def shift_tokens(self, x: Tensor) -> Tensor:
        """The residual stream, [B T, 1 + N, C], its class token shifted."""
        if self.shift != 'token':
            return x
        return token_shift(self._clips(x), self.fraction,
                           self.first).flatten(0, 1)

    def extra_repr(self) -> str:
        level = f', level={self.level}' if self.attention == 'leap' else ''
        shift = '' if self.shift == 'none' else (
            f', fraction={self.fraction:g}, first={self.first}')
        return (f'num_frames={self.num_frames}, attention={self.attention}'
                f'{level}, shift={self.shift}{shift}')

    def _clips(self, x: Tensor) -> Tensor:
        """[B T, *] to [B, T, *]."""
        if x.shape[0] % self.num_frames:
            raise ValueError(
                f'{x.shape[0]} frames are no whole number of clips of '
                f'num_frames={self.num_frames}')
        return x.unflatten(0, (-1, self.num_frames))
