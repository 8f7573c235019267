# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images of attention matrices, and of attention over frames."""
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .annotate import SHEET_FRAMES, sheet_indices
from .figure import save_figure

CELL_INCHES = 3.2
TILE_INCHES = 2.4
# Quantile of the weights that gets the brightest color. With the maximum, a
# single large weight, such as the weight of the query itself, would make all
# other weights look black.
BRIGHTEST = 0.995


@dataclass
class Overlay:
    """Attention of one token over the frames of a clip.

    Attributes:
        title: Title, e.g. the model's name.
        frames: RGB frames [T, H, W, 3], uint8.
        weights: Weight of each token [T, h, w]; NaN for tokens that are not
            keys of the query.
        token: Position (t, y, x) of the query.
        extent: Left, right, top and bottom edge of the token grid, in pixels
            of a frame. The grid may exceed the frame.
    """
    title: str
    frames: np.ndarray
    weights: np.ndarray
    token: tuple[int, int, int]
    extent: tuple[float, float, float, float]


def draw_matrices(path: str | Path, matrices: Sequence[np.ndarray],
                  titles: Sequence[str], caption: str = '') -> None:
    """Write an image of attention matrices side by side; brighter is larger.

    Each matrix has a separate color scale, from 0 (or its minimum if that is
    negative) to its 99.5 % quantile.

    Args:
        path: Path of the image, a png.
        matrices: Matrices [R, M] of R queries (rows) and M keys (columns).
        titles: Title of each matrix.
        caption: Caption of the image. Defaults to ''.
    """
    figure = Figure(figsize=(CELL_INCHES * len(matrices), CELL_INCHES + 0.8),
                    layout='constrained')
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axis, matrix, title in zip(axes, matrices, titles):
        image = axis.imshow(
            matrix, cmap='viridis', aspect='auto',
            vmin=min(0., float(matrix.min())),
            vmax=float(np.quantile(matrix, BRIGHTEST)))
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=7)
        figure.colorbar(image, ax=axis, location='bottom').ax.tick_params(
            labelsize=6)
    axes[0].set_ylabel('query')
    figure.suptitle(caption, fontsize=9)
    save_figure(figure, path)


def frames_to_show(overlay: Overlay) -> list[int]:
    """Choose up to 8 frames with keys, and the frame of the query."""
    t = overlay.token[0]
    frames = np.flatnonzero(np.isfinite(overlay.weights).any(axis=(1, 2)))
    if len(frames) > SHEET_FRAMES:
        frames = frames[sheet_indices(len(frames))]
        if t not in frames:
            frames[np.abs(frames - t).argmin()] = t
    return sorted({t, *frames.tolist()})


def _draw_tile(axis, overlay: Overlay, t: int) -> None:
    height, width = overlay.frames.shape[1:3]
    axis.imshow(overlay.frames[t], extent=(0, width, height, 0))
    left, right, top, bottom = overlay.extent
    axis.imshow(
        np.ma.masked_invalid(overlay.weights[t]), cmap='inferno', alpha=0.65,
        vmin=0, vmax=float(np.nanmax(overlay.weights)),
        extent=(left, right, bottom, top))
    if t == overlay.token[0]:
        _, y, x = overlay.token
        h, w = overlay.weights.shape[1:]
        side = (right - left) / w, (bottom - top) / h
        axis.add_patch(Rectangle(
            (left + x * side[0], top + y * side[1]), *side, fill=False,
            edgecolor='cyan', linewidth=1.5))
    axis.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])


def draw_overlays(path: str | Path, overlays: Sequence[Overlay],
                  caption: str = '') -> None:
    """Write an image of a token's attention over frames; brighter is larger.

    The image has a row of frames for each overlay, or one row for all
    overlays if each of them has only one frame. A box marks the query.

    Args:
        path: Path of the image, a png.
        overlays: Overlays of the same token, one per model.
        caption: Caption of the image. Defaults to ''.
    """
    tiles = [[(overlay, t) for t in frames_to_show(overlay)]
             for overlay in overlays]
    if all(len(row) == 1 for row in tiles):
        tiles = [[row[0] for row in tiles]]
    columns = max(map(len, tiles))
    figure = Figure(figsize=(TILE_INCHES * columns,
                             (TILE_INCHES + 0.3) * len(tiles) + 0.4),
                    layout='constrained')
    axes = figure.subplots(len(tiles), columns, squeeze=False)
    for row, row_axes in zip(tiles, axes):
        previous = None
        for axis, (overlay, t) in zip(row_axes, row):
            _draw_tile(axis, overlay, t)
            name = '' if overlay is previous else f'{overlay.title}, '
            axis.set_title(f'{name}frame {t}', fontsize=8)
            previous = overlay
        for axis in row_axes[len(row):]:
            axis.set_axis_off()
    figure.suptitle(caption, fontsize=9)
    save_figure(figure, path)
