# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames of several clips, a row each."""
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .attention_map import DPI

ROW_INCHES, FRAME_INCHES = 1.55, 1.7


def draw_clip_rows(path: str | Path, rows: Sequence[np.ndarray],
                   titles: Sequence[str], caption: str = '') -> None:
    """Write a picture with a row of frames for each clip, under its title.

    Args:
        path: The picture, a png.
        rows: Of each clip some RGB frames [T, H, W, 3], uint8.
        titles: Of each clip.
        caption: Above all; without a clip it is the picture.
    """
    columns = max((len(row) for row in rows), default=4)
    figure = Figure(
        figsize=(FRAME_INCHES * columns, ROW_INCHES * len(rows) + 0.6),
        layout='constrained')
    figure.suptitle(caption, fontsize=10, parse_math=False)
    if rows:
        parts = np.atleast_1d(figure.subfigures(len(rows), 1))
    for part, frames, title in zip(parts if rows else (), rows, titles):
        # parse_math: names of files and classes may have dollars.
        part.suptitle(title, fontsize=8, x=0.01, ha='left', parse_math=False)
        for axis, frame in zip(part.subplots(1, columns, squeeze=False)[0],
                               frames):
            axis.imshow(frame)
        for axis in part.axes:
            axis.set_axis_off()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
