# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention matrices side by side, and attention over the frames."""
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .annotate import SHEET_FRAMES

CELL_INCHES = 3.2
TILE_INCHES = 2.4
DPI = 120
# A single key, such as a query itself, must not turn the rest black.
BRIGHTEST = 0.995


@dataclass
class Overlay:
    """Attention of a token over the frames of a clip.

    Attributes:
        title: E.g. the model's name.
        frames: RGB frames [T, H, W, 3], uint8.
        weights: A weight for each token, [T, h, w]; NaN where there is no
            key.
        token: (t, y, x) of the query.
        extent: Left, right, top and bottom edge of the grid of tokens in
            pixels of a frame; it may reach beyond the frame.
    """
    title: str
    frames: np.ndarray
    weights: np.ndarray
    token: tuple[int, int, int]
    extent: tuple[float, float, float, float]


def _save(figure: Figure, path: str | Path) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)


def draw_matrices(path: str | Path, matrices: Sequence[np.ndarray],
                  titles: Sequence[str], caption: str = '') -> None:
    """Write attention matrices side by side; brighter is larger.

    Each matrix has a scale of its own, from 0, or its least weight if that is
    negative, to nearly its largest one.

    Args:
        path: The picture, a png.
        matrices: A row a query and a column a key, [R, M] each.
        titles: One for each.
        caption: Above all.
    """
    figure = Figure(
        figsize=(CELL_INCHES * len(matrices), CELL_INCHES + 0.8),
        layout='constrained')
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axis, matrix, title in zip(axes, matrices, titles):
        image = axis.imshow(
            matrix,
            cmap='viridis',
            aspect='auto',
            vmin=min(0., float(matrix.min())),
            vmax=float(np.quantile(matrix, BRIGHTEST)))
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=7)
        figure.colorbar(image, ax=axis, location='bottom').ax.tick_params(
            labelsize=6)
    axes[0].set_ylabel('query')
    figure.suptitle(caption, fontsize=9)
    _save(figure, path)


def frames_to_show(overlay: Overlay) -> list[int]:
    """The query's frame and those with keys; if too many, some of them."""
    t = overlay.token[0]
    frames = np.flatnonzero(
        np.isfinite(overlay.weights).any(axis=(1, 2)))
    if len(frames) > SHEET_FRAMES:
        at = np.linspace(0, len(frames) - 1, SHEET_FRAMES)
        frames = frames[at.round().astype(int)]
        if t not in frames:
            frames[np.abs(frames - t).argmin()] = t
    return sorted({t, *frames.tolist()})


def _draw_tile(axis, overlay: Overlay, t: int) -> None:
    height, width = overlay.frames.shape[1:3]
    axis.imshow(overlay.frames[t], extent=(0, width, height, 0))
    left, right, top, bottom = overlay.extent
    axis.imshow(
        np.ma.masked_invalid(overlay.weights[t]),
        cmap='inferno',
        alpha=0.65,
        vmin=0,
        vmax=float(np.nanmax(overlay.weights)),
        extent=(left, right, bottom, top))
    if t == overlay.token[0]:
        _, y, x = overlay.token
        h, w = overlay.weights.shape[1:]
        side = (right - left) / w, (bottom - top) / h
        axis.add_patch(
            Rectangle((left + x * side[0], top + y * side[1]),
                      *side,
                      fill=False,
                      edgecolor='cyan',
                      linewidth=1.5))
    axis.set_xlim(0, width)
    axis.set_ylim(height, 0)
    axis.set_xticks([])
    axis.set_yticks([])


def draw_overlays(path: str | Path, overlays: Sequence[Overlay],
                  caption: str = '') -> None:
    """Write what a token attends to, over the frames; brighter is larger.

    There is a row for each overlay with some frames, the query framed; or,
    where there is one frame only, all in one row.

    Args:
        path: The picture, a png.
        overlays: One for each model, of the same token.
        caption: Above all.
    """
    shown = [frames_to_show(overlay) for overlay in overlays]
    tiles = [[(overlay, t) for t in frames]
             for overlay, frames in zip(overlays, shown)]
    if all(len(row) == 1 for row in tiles):
        tiles = [[row[0] for row in tiles]]
    columns = max(map(len, tiles))
    figure = Figure(
        figsize=(TILE_INCHES * columns, (TILE_INCHES + 0.3) * len(tiles) +
                 0.4),
        layout='constrained')
    axes = figure.subplots(len(tiles), columns, squeeze=False)
    for row, of_row in zip(tiles, axes):
        previous = None
        for axis, (overlay, t) in zip(of_row, row):
            _draw_tile(axis, overlay, t)
            name = '' if overlay is previous else f'{overlay.title}, '
            axis.set_title(f'{name}frame {t}', fontsize=8)
            previous = overlay
        for axis in of_row[len(row):]:
            axis.set_axis_off()
    figure.suptitle(caption, fontsize=9)
    _save(figure, path)
