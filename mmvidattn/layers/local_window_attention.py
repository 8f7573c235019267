# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from ..ops import softmax_attention
from ..ops.window import fit_window, window_merge, window_partition
from ..utils.arguments import Count, check_arguments, check_divides

Size = tuple[Count, Count, Count]


@check_arguments
class LocalWindowAttention(nn.Module):
    """Softmax attention within windows that do not overlap (LW-MSA).

    This is the local attention of `DualFormer
    <https://arxiv.org/abs/2112.04674>`_, Sec. 3.2.1.

    Differs from the released code: grids that the window does not divide are
    padded, and the padding is masked; the released code fails.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        window_size: Frames, rows and columns (t, h, w) of a window.
        qkv_bias: Add a bias to the projection to Q, K, V. Defaults to True.
        with_relative_bias: Add a learned bias for each head and each distance
            of two tokens to the scores, as Video Swin does. Defaults to
            False.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 window_size: Size,
                 qkv_bias: bool = True,
                 with_relative_bias: bool = False) -> None:
        super().__init__()
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        self.num_heads = num_heads
        self.window_size = tuple(window_size)
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.relative_bias = None
        if with_relative_bias:
            self.relative_bias = nn.Parameter(
                torch.zeros(*(2 * n - 1 for n in self.window_size),
                            num_heads))

    def forward(self, x: Tensor) -> Tensor:
        """Attend within clips [B, T, H, W, C]; return the same shape."""
        grid_shape = x.shape[1:4]
        window_size = fit_window(self.window_size, grid_shape)
        windows, mask = window_partition(x, window_size)
        if mask is not None:
            mask = mask.expand(x.shape[0], -1, -1)
        qkv = self.qkv(windows).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = qkv.unbind(-3)
        y = softmax_attention(
            q, k, v, key_mask=mask, bias=self._bias(window_size))
        return window_merge(self.proj(y.flatten(-2)), window_size, grid_shape)

    def _bias(self, window_size: Size) -> Tensor | None:
        """Return the bias of each pair of tokens of a window, [G, N, N]."""
        if self.relative_bias is None:
            return None
        places = torch.cartesian_prod(*(
            torch.arange(n, device=self.relative_bias.device)
            for n in window_size))
        index = [i[:, None] - i + size - 1
                 for i, size in zip(places.unbind(-1), self.window_size)]
        return self.relative_bias[tuple(index)].permute(2, 0, 1)

    def extra_repr(self) -> str:
        return f'window_size={self.window_size}'
