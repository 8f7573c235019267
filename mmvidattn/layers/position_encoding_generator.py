# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops.depthwise_conv import depthwise_conv


class PositionEncodingGenerator(nn.Module):
    """Tokens plus a depth-wise convolution of them.

    Eq. 4 of `DualFormer <https://arxiv.org/abs/2112.04674>`_. The zeros
    around the grid tell a token where it is.

    Args:
        embed_dims: Channels C.
        kernel_size: Side of the cube of tokens that a token sees, odd.
    """

    def __init__(self, embed_dims: int, kernel_size: int = 3) -> None:
        super().__init__()
        self.dwconv = nn.Conv3d(
            embed_dims,
            embed_dims,
            kernel_size,
            padding=kernel_size // 2,
            groups=embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, C] to the same shape."""
        return x + depthwise_conv(x, self.dwconv.weight, self.dwconv.bias)
