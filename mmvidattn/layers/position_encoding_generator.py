# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops.depthwise_conv import depthwise_conv


class PositionEncodingGenerator(nn.Module):
    """Residual depth-wise convolution that encodes positions.

    This is Eq. 4 of `DualFormer <https://arxiv.org/abs/2112.04674>`_. The zero
    padding around the grid reveals the position of a token.

    Args:
        embed_dims: Channels C.
        kernel_size: Side of the kernel, odd. Defaults to 3.
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
        """Add positions to tokens [B, T, H, W, C]."""
        return x + depthwise_conv(x, self.dwconv.weight, self.dwconv.bias)
