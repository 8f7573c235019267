# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Annotated, Literal, get_args

from torch import Tensor, nn

from ...ops import softmax_attention
from ...ops.leap import leap_pair, leap_step, leap_unpair
from ...ops.periodic_shift import periodic_shift, plain_shift, token_shift
from ...utils.arguments import Count, Range, check_arguments, check_divides

Reach = Literal['2d', '3d', 'leap']
Shift = Literal['none', 'plain', 'periodic', 'token']
ATTENTIONS = get_args(Reach)
Half = Annotated[float, Range('a number in [0, 1/2]', lambda x: 0 <= x <= .5)]


@check_arguments
class FrameMixing(nn.Module):
    """Leap or 3D attention and temporal shift for an image attention.

    It has no parameters. :meth:`join` concatenates the tokens of several
    frames to one sequence, so that an attention over this sequence is a leap
    or 3D attention. :meth:`part` separates the frames again. The shift
    exchanges channels of the attention's output between neighboring frames.

    Args:
        num_frames: Clip length T.
        attention: Frames of a sequence: '2d' (one), 'leap' (two frames
            T / 2^level apart) or '3d' (all). Defaults to 'leap'.
        level: Pyramid level R of leap attention. Defaults to 1.
        shift: 'none', 'plain', 'periodic' or 'token'; the first three apply
            to :meth:`shift_heads`, 'token' to :meth:`shift_tokens`. Defaults
            to 'periodic'.
        shift_fraction: Fraction of the channels from the previous frame, and
            from the next frame. Defaults to 0.25.
        shift_first: Source of the first part, the 'next' or the 'previous'
            frame. Defaults to 'next'.

    Raises:
        ValueError: If the frames form no pairs at this level.
    """

    def __init__(self,
                 num_frames: Count,
                 attention: Reach = 'leap',
                 level: int = 1,
                 shift: Shift = 'periodic',
                 shift_fraction: Half = 0.25,
                 shift_first: Literal['next', 'previous'] = 'next') -> None:
        super().__init__()
        if attention == 'leap':
            leap_step(num_frames, level)
        self.num_frames = num_frames
        self.attention = attention
        self.level = level
        self.shift = shift
        self.shift_fraction = shift_fraction
        self.shift_first = shift_first

    def join(self, x: Tensor) -> Tensor:
        """Join tokens of frames, [B T, N, *], into sequences.

        Returns:
            [B T / n, n N, *] for sequences of n frames: 1, 2 or T.

        Raises:
            ValueError: If the frames are not a whole number of clips.
        """
        if self.attention == '2d':
            return x
        x = self._clips(x)
        if self.attention == '3d':
            return x.flatten(1, 2)
        return leap_pair(x, self.level)

    def part(self, x: Tensor) -> Tensor:
        """Undo :meth:`join`."""
        if self.attention == '2d':
            return x
        if self.attention == '3d':
            return x.unflatten(1, (self.num_frames, -1)).flatten(0, 1)
        return leap_unpair(x, self.level, self.num_frames).flatten(0, 1)

    def shift_heads(self, x: Tensor) -> Tensor:
        """Shift channels of the attention's output, [B T, N, G, D]."""
        if self.shift not in ('plain', 'periodic'):
            return x
        shift = plain_shift if self.shift == 'plain' else periodic_shift
        return shift(self._clips(x), self.shift_fraction,
                     self.shift_first).flatten(0, 1)

    def shift_tokens(self, x: Tensor) -> Tensor:
        """Shift the class tokens of the residual stream, [B T, 1 + N, C]."""
        if self.shift != 'token':
            return x
        return token_shift(self._clips(x), self.shift_fraction,
                           self.shift_first).flatten(0, 1)

    def extra_repr(self) -> str:
        level = f', level={self.level}' if self.attention == 'leap' else ''
        shift = '' if self.shift == 'none' else (
            f', fraction={self.shift_fraction:g}, first={self.shift_first}')
        return (f'num_frames={self.num_frames}, attention={self.attention}'
                f'{level}, shift={self.shift}{shift}')

    def _clips(self, x: Tensor) -> Tensor:
        """Reshape [B T, *] to [B, T, *]."""
        if x.shape[0] % self.num_frames:
            raise ValueError(
                f'{x.shape[0]} frames are not a multiple of '
                f'num_frames={self.num_frames}')
        return x.unflatten(0, (-1, self.num_frames))


class LAPSAttention(nn.Module):
    """Softmax self-attention of frames with leap and shift, Fig. 2.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        mixing: Module that joins frames to sequences and shifts channels.
        bias: Add biases to the projections. Defaults to True.

    Raises:
        ValueError: If ``num_heads`` does not divide ``embed_dims``.
    """

    def __init__(self, embed_dims: int, num_heads: int, mixing: FrameMixing,
                 bias: bool = True) -> None:
        super().__init__()
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=bias)
        self.mixing = mixing
        self.proj = nn.Linear(embed_dims, embed_dims, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Attend with tokens of frames, [B T, *, C]; return the same shape."""
        shape = x.shape
        # Join before the projection, to copy one tensor instead of three.
        x = self.mixing.join(x.flatten(1, -2))
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(-3)
        x = self.mixing.part(softmax_attention(q, k, v))
        x = self.mixing.shift_heads(x)
        return self.proj(x.flatten(-2)).view(shape)
