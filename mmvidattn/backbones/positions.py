# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Resizing of position tables to other clip lengths and frame sizes."""
import math

import torch
import torch.nn.functional as F
from torch import Tensor

Grid = tuple[int, int, int]


def resize_positions(table: Tensor, grid_shape: Grid) -> Tensor:
    """Resize a position table [1, t, h, w, D] to [1, T, H, W, D].

    Interpolates linearly in time, and bicubically in space for each frame. A
    table for one frame, such as an image model's, is repeated over time.
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


def fit_positions(table: Tensor, target: Tensor, grid_shape: Grid) -> Tensor:
    """Resize the position table of a checkpoint to a model's table.

    Args:
        table: Table of the checkpoint, in the layout of ``target``.
        target: Table of the model: [1, T, H, W, D], [1, D, H, W], or
            [1, 1 + H W, D] with the position of a class token first.
        grid_shape: Grid (T, H, W) of ``target``.

    Returns:
        The table in the shape of ``target``. It is returned unchanged if the
        layout or the channels differ, or the positions form no square.
    """
    channels = 1 if target.dim() == 4 else -1
    if table.dim() != target.dim() or table.shape == target.shape or \
            table.shape[channels] != target.shape[channels]:
        return table
    if table.dim() == 5:
        return resize_positions(table, grid_shape)
    if table.dim() == 4:
        grid = table.permute(0, 2, 3, 1).unsqueeze(1)
        return resize_positions(grid,
                                grid_shape).squeeze(1).permute(0, 3, 1, 2)
    side = math.isqrt(table.shape[1] - 1)
    if table.shape[1] != 1 + side**2:
        return table
    grid = table[:, None, 1:].unflatten(2, (side, side))
    grid = resize_positions(grid, grid_shape).flatten(1, 3)
    return torch.cat([table[:, :1], grid], dim=1)


def repeat_cyclic(state_dict: dict[str, Tensor], name: str,
                  num_frames: int) -> None:
    """Expand the cyclic temporal table of a state dict, in place.

    The released linear video transformer and XViT read a table of 8 frames
    cyclically; ``convert`` names it ``cyclic_temporal_embed``.

    Args:
        state_dict: State dict, with or without the table [1, t, 1, 1, D].
        name: Name of the expanded table [1, T, 1, 1, D].
        num_frames: Clip length T.
    """
    cyclic = state_dict.pop(
        name.replace('temporal_embed', 'cyclic_temporal_embed'), None)
    if cyclic is not None:
        frames = torch.arange(num_frames) % cyclic.shape[1]
        state_dict[name] = cyclic[:, frames]
