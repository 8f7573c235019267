# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from ..ops import softmax_attention
from ..utils.arguments import check_divides


class FactorizedDotAttention(nn.Module):
    """Factorized dot-product attention, Model 4 of ViViT.

    The first half of the heads attends to tokens at the same position in
    other frames, the second half to tokens of the same frame; the output
    projection mixes them. It has the same parameters as joint attention.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G, even.
        qkv_bias: Add a bias to the projection to Q, K, V. Defaults to True.
        attn_drop_rate: Dropout of the attention weights. Defaults to 0.
        drop_rate: Dropout after the output projection. Defaults to 0.
    """

    def __init__(self, embed_dims: int, num_heads: int, qkv_bias: bool = True,
                 attn_drop_rate: float = 0., drop_rate: float = 0.) -> None:
        super().__init__()
        if num_heads % 2:
            raise ValueError('num_heads must be even, to be split between '
                             f'time and space, got {num_heads}')
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        self.num_heads = num_heads
        self.attn_drop_rate = attn_drop_rate
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.dropout = nn.Dropout(drop_rate)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within clips [B, T, H, W, C]; return the same shape."""
        qkv = self.qkv(x).flatten(2, 3).unflatten(
            -1, (3, 2, self.num_heads // 2, -1))
        # Each [B, T, HW, 3, G/2, D].
        in_time, in_space = qkv.unbind(-3)
        drop = self.attn_drop_rate if self.training else 0.
        time = softmax_attention(
            *in_time.transpose(1, 2).unbind(-3), dropout_p=drop)
        space = softmax_attention(*in_space.unbind(-3), dropout_p=drop)
        y = torch.cat([time.transpose(1, 2), space], dim=-2)
        return self.dropout(self.proj(y.reshape(x.shape)))
