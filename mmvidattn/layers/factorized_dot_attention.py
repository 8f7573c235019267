# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from ..ops import softmax_attention
from .linear import Linear


class FactorizedDotAttention(nn.Module):
    """Softmax self-attention of which half the heads see time, half space.

    Factorized dot-product attention, Model 4 of ViViT. The first heads attend
    to the tokens at the same place, the others to those of the same frame;
    one projection mixes them. It has the parameters of joint attention.

    Args:
        embed_dims: Channels C.
        num_heads: Heads G, an even number.
        qkv_bias: Whether the projection to Q, K, V has a bias.
        attn_drop_rate: Dropout of the attention weights.
        drop_rate: Dropout after the output projection.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 qkv_bias: bool = True,
                 attn_drop_rate: float = 0.,
                 drop_rate: float = 0.) -> None:
        super().__init__()
        if num_heads % 2:
            raise ValueError('num_heads must be even, to be split between '
                             f'time and space, got {num_heads}')
        if embed_dims % num_heads:
            raise ValueError(f'embed_dims={embed_dims} is not divisible by '
                             f'num_heads={num_heads}')
        self.num_heads = num_heads
        self.attn_drop_rate = attn_drop_rate
        self.qkv = Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.proj = Linear(embed_dims, embed_dims)
        self.dropout = nn.Dropout(drop_rate)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, C] to the same shape."""
        qkv = self.qkv(x).flatten(2, 3).unflatten(
            -1, (3, 2, self.num_heads // 2, -1))
        # [B, T, HW, 3, G/2, D] each.
        in_time, in_space = qkv.unbind(-3)
        drop = self.attn_drop_rate if self.training else 0.
        time = softmax_attention(
            *in_time.transpose(1, 2).unbind(-3), dropout_p=drop)
        space = softmax_attention(*in_space.unbind(-3), dropout_p=drop)
        y = torch.cat([time.transpose(1, 2), space], dim=-2)
        return self.dropout(self.proj(y.reshape(x.shape)))


# The old name.
FactorisedDotAttention = FactorizedDotAttention
