# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames of several clips, a row each."""
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from matplotlib.figure import Figure

from .annotate import GAP
from .attention_map import DPI

WIDTH_INCHES, ROW_INCHES, LINE_INCHES, GAP_INCHES = 9., 1.2, 0.28, 0.12
FRAME_HEIGHT = 160


def draw_clip_rows(path: str | Path, rows: Sequence[np.ndarray],
                   titles: Sequence[str], caption: str = '') -> None:
    """Write a picture with a row of frames for each clip, under its title.

    Args:
        path: The picture, a png.
        rows: Of each clip some RGB frames [T, H, W, 3], uint8.
        titles: Of each clip.
        caption: Above all; without a clip it is the picture.
    """
    step = ROW_INCHES + LINE_INCHES
    height = 2 * LINE_INCHES + step * len(rows)
    figure = Figure(figsize=(WIDTH_INCHES, height))

    # parse_math: names of files and classes may have dollars.
    def write(inches: float, words: str, size: int) -> None:
        figure.text(0.01, 1 - inches / height, words, fontsize=size,
                    va='top', parse_math=False)

    write(0.08, caption, 10)
    for i, (frames, title) in enumerate(zip(rows, titles)):
        top = 1.5 * LINE_INCHES + step * i
        write(top, title, 8)
        bottom = top + step - GAP_INCHES
        axis = figure.add_axes((0.01, 1 - bottom / height, 0.98,
                                ROW_INCHES / height), anchor='W')
        axis.imshow(_side_by_side(frames))
        axis.set_axis_off()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)


def _side_by_side(frames: np.ndarray) -> np.ndarray:
    """Frames [T, H, W, 3] as one image of ``FRAME_HEIGHT`` rows."""
    width = max(1, round(
        frames.shape[2] * FRAME_HEIGHT / frames.shape[1]))
    tiles = [np.pad(cv2.resize(frame, (width, FRAME_HEIGHT)),
                    ((0, 0), (0, GAP), (0, 0)), constant_values=255)
             for frame in frames]
    return np.concatenate(tiles, axis=1)
