# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ...ops import softmax_attention
from ...utils.checks import check_divides
from .frame_mixing import FrameMixing


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

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 mixing: FrameMixing,
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
