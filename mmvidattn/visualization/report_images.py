# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images of a report: training curves, and clips with a row each."""
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from matplotlib.figure import Figure

from .annotate import GAP
from .style import save_figure

WIDTH_INCHES, ROW_INCHES, CAPTION_INCHES = 9., 1.5, 0.6
FRAME_HEIGHT = 160
CURVES_INCHES = 10., 3.6


def draw_clip_rows(path: str | Path, rows: Sequence[np.ndarray],
                   titles: Sequence[str], caption: str = '') -> None:
    """Write an image with a title and a row of frames for each clip.

    Args:
        path: Path of the image, a png.
        rows: RGB frames [T, H, W, 3], uint8, of each clip. May be empty.
        titles: Title of each clip.
        caption: Caption of the image. Defaults to ''.
    """
    number = max(1, len(rows))
    height = CAPTION_INCHES + ROW_INCHES * number
    figure = Figure(figsize=(WIDTH_INCHES, height))
    # parse_math=False, because names of files and classes may contain '$'.
    figure.suptitle(caption, x=0.01, y=1 - 0.08 / height, ha='left', va='top',
                    fontsize=10, parse_math=False)
    axes = figure.subplots(number, 1, squeeze=False, gridspec_kw=dict(
        left=0.01, right=0.99, bottom=0, hspace=0.25,
        top=1 - CAPTION_INCHES / height))[:, 0]
    for axis, frames, title in zip(axes, rows, titles):
        axis.imshow(_side_by_side(frames))
        axis.set_anchor('W')
        axis.set_title(title, loc='left', fontsize=8, parse_math=False)
    for axis in axes:
        axis.set_axis_off()
    save_figure(figure, path)


def _side_by_side(frames: np.ndarray) -> np.ndarray:
    """Join frames [T, H, W, 3] to one image of height ``FRAME_HEIGHT``."""
    width = max(1, round(frames.shape[2] * FRAME_HEIGHT / frames.shape[1]))
    tiles = [np.pad(cv2.resize(frame, (width, FRAME_HEIGHT)),
                    ((0, 0), (0, GAP), (0, 0)), constant_values=255)
             for frame in frames]
    return np.concatenate(tiles, axis=1)


def draw_training_curves(path: str | Path, training: Sequence[dict],
                         validation: Sequence[dict], chance: float | None,
                         metric: str, title: str) -> None:
    """Write an image of the loss, the accuracies and the learning rate.

    Args:
        path: Path of the image, a png.
        training: Training log, with ``epoch``, ``loss``, ``lr`` and
            ``top1_acc``. The last values of each epoch are drawn.
        validation: Validation log, with ``step`` (the epoch) and ``metric``.
        chance: Accuracy of always predicting the most frequent class, drawn as
            a line, or None.
        metric: Metric of the validation.
        title: Title of the curves of the accuracy.
    """
    figure = Figure(figsize=CURVES_INCHES)
    axes = figure.subplots(1, 3)
    figure.subplots_adjust(0.05, 0.14, 0.98, 0.9, wspace=0.3)
    for axis, name, label in zip(axes, ('loss', 'top1_acc', 'lr'),
                                 ('loss', title, 'learning rate')):
        epochs = {log['epoch']: log[name] for log in training if name in log}
        axis.plot(*zip(*sorted(epochs.items())), marker='.', label='training')
        axis.set_title(label, fontsize=10)
        axis.set_xlabel('epoch')
        axis.grid(alpha=0.3)
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylim(-0.03, 1.03)
    if validation:
        axes[1].plot([log['step'] for log in validation],
                     [log[metric] for log in validation],
                     marker='o', label='validation')
    if chance is not None:
        axes[1].axhline(chance, color='gray', linestyle='--',
                        label=f'chance ({100 * chance:.0f} %)')
    if validation or chance is not None:
        axes[1].legend(fontsize=8)
    save_figure(figure, path)
