# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch.nn.functional as F
from torch import Tensor


def resize_positions(table: Tensor, grid_shape: tuple[int, int,
                                                      int]) -> Tensor:
    """A table of positions for another clip length or frame size.

    Linear in time and bicubic in space, each frame's table by itself. A table
    of one frame, such as an image model's, is repeated over time.

    Args:
        table: [1, t, h, w, D].
        grid_shape: (T, H, W) wanted.

    Returns:
        [1, T, H, W, D].
    """
    dtype, (_, t, h, w, D) = table.dtype, table.shape
    T, H, W = grid_shape
    if t != T:
        table = F.interpolate(
            table.reshape(1, t, -1).transpose(1, 2).float(), size=T,
            mode='linear').transpose(1, 2).reshape(1, T, h, w, D)
    if (h, w) != (H, W):
        table = F.interpolate(
            table[0].permute(0, 3, 1, 2).float(), size=(H, W),
            mode='bicubic').permute(0, 2, 3, 1)[None]
    return table.to(dtype)
