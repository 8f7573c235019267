# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tables of learned positions, for other clip lengths and frame sizes."""
import math

import torch
import torch.nn.functional as F
from torch import Tensor

Grid = tuple[int, int, int]


def resize_positions(table: Tensor, grid_shape: Grid) -> Tensor:
    """Resize a table of positions to another clip length or frame size.

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


def fit_positions(table: Tensor, own: Tensor, grid_shape: Grid) -> Tensor:
    """Fit the table of a checkpoint to the one of a model.

    Args:
        table: In the layout of ``own``, of any grid.
        own: The model's: [1, T, H, W, D], [1, D, H, W], or [1, 1 + H W, D]
            with the position of a class token first.
        grid_shape: Grid (T, H, W) of ``own``.

    Returns:
        The table in the shape of ``own``, or as it is if it has another
        layout, other channels or no square of positions.
    """
    channels = 1 if own.dim() == 4 else -1
    if table.dim() != own.dim() or table.shape == own.shape or \
            table.shape[channels] != own.shape[channels]:
        return table
    if table.dim() == 5:
        return resize_positions(table, grid_shape)
    if table.dim() == 4:
        places = table.permute(0, 2, 3, 1).unsqueeze(1)
        return resize_positions(places,
                                grid_shape).squeeze(1).permute(0, 3, 1, 2)
    side = math.isqrt(table.shape[1] - 1)
    if table.shape[1] != 1 + side**2:
        return table
    places = table[:, None, 1:].unflatten(2, (side, side))
    places = resize_positions(places, grid_shape).flatten(1, 3)
    return torch.cat([table[:, :1], places], dim=1)


def repeat_cyclic(state_dict: dict[str, Tensor], name: str,
                  num_frames: int) -> None:
    """Repeat the released temporal table over the frames, in place.

    The released linear video transformer and XViT read a table of 8 frames
    cyclically; ``convert`` names it ``cyclic_temporal_embed``.

    Args:
        state_dict: With or without that table, [1, t, 1, 1, D].
        name: Of the table [1, T, 1, 1, D] that takes its place.
        num_frames: Frames T.
    """
    cyclic = state_dict.pop(
        name.replace('temporal_embed', 'cyclic_temporal_embed'), None)
    if cyclic is not None:
        frames = torch.arange(num_frames) % cyclic.shape[1]
        state_dict[name] = cyclic[:, frames]
