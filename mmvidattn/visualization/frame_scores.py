# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Image of a clip's frames above the models' scores for each frame."""
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .figure import save_figure

FRAME_INCHES = 1.3
CURVE_INCHES = 2.
STYLES = '-', '--', ':', '-.'


def draw_frame_scores(path: str | Path, frames: np.ndarray,
                      scores: Sequence[np.ndarray], names: Sequence[str],
                      caption: str = '') -> None:
    """Write an image with a row of frames above a curve for each model.

    Args:
        path: Path of the image, a png.
        frames: RGB frames [T, H, W, 3], uint8.
        scores: Scores [T'] of each model, in [0, 1], spread evenly over the
            clip.
        names: Name of each model.
        caption: Caption of the image. Defaults to ''.
    """
    T = len(frames)
    figure = Figure(figsize=(FRAME_INCHES * T, FRAME_INCHES + CURVE_INCHES),
                    layout='constrained')
    grid = figure.add_gridspec(2, T, height_ratios=(FRAME_INCHES,
                                                    CURVE_INCHES))
    for t, frame in enumerate(frames):
        axis = figure.add_subplot(grid[0, t])
        axis.imshow(frame)
        axis.set_axis_off()
    axis = figure.add_subplot(grid[1, :])
    for i, (curve, name) in enumerate(zip(scores, names)):
        # Plot the score of a frame below the middle of the frame.
        at = (np.arange(len(curve)) + 0.5) / len(curve) * T - 0.5
        axis.plot(at, curve, STYLES[i % len(STYLES)], marker='o', label=name)
    axis.set(xlim=(-0.5, T - 0.5), ylim=(-0.03, 1.03), xticks=range(T),
             xlabel='frame', ylabel='score')
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.suptitle(caption, fontsize=10)
    save_figure(figure, path)
