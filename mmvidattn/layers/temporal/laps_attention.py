# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ...ops import softmax_attention
from ..linear import Linear
from .frame_mixing import FrameMixing


class LAPSAttention(nn.Module):
    """Softmax self-attention over frames, with or without leap and shift.

    Projections, attention over the sequences that ``mixing`` joins, its
    shift, output projection: Fig. 2 of the paper.

    Args:
        embed_dims: Channels C.
        num_heads: Heads.
        mixing: Which frames attend to one another, and the shift.
        bias: Whether the projections have biases.

    Raises:
        ValueError: If the heads do not share the channels evenly.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 mixing: FrameMixing,
                 bias: bool = True) -> None:
        super().__init__()
        if embed_dims % num_heads:
            raise ValueError(f'embed_dims={embed_dims} is no multiple of '
                             f'num_heads={num_heads}')
        self.num_heads = num_heads
        self.qkv = Linear(embed_dims, 3 * embed_dims, bias=bias)
        self.mixing = mixing
        self.proj = Linear(embed_dims, embed_dims, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens of frames, [B T, *, C], to the same shape."""
        shape = x.shape
        # Before the projections: one tensor moves, and not three.
        x = self.mixing.join(x.flatten(1, -2))
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(-3)
        x = self.mixing.part(softmax_attention(q, k, v))
        x = self.mixing.shift_heads(x)
        return self.proj(x.flatten(-2)).view(shape)
