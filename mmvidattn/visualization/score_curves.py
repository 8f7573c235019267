# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores of a stream over time, with what really happened behind them."""
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .attention_map import DPI

WIDTH_INCHES, ROW_INCHES = 12., 1.25
MAX_CURVES = 8
# The highest score of a class that is worth a row.
LEAST_PEAK = 0.1


def choose_classes(scores: np.ndarray, truth: np.ndarray | None = None,
                   ignore: Sequence[int] = (0, )) -> list[int]:
    """The classes to show: those that take place, then the highest scores.

    Args:
        scores: [T, K].
        truth: 0 or 1, [T', K].
        ignore: Classes that are not shown.

    Returns:
        At most ``MAX_CURVES``, sorted; without those that never score, but
        one at least.
    """
    rank = np.nanmax(scores, axis=0)
    if truth is not None:
        rank = rank + truth.any(axis=0)
    rank = rank.copy()
    rank[list(ignore)] = -1
    best = np.argsort(-rank, kind='stable')[:MAX_CURVES]
    return sorted(int(i) for i in best
                  if rank[i] >= min(LEAST_PEAK, rank[best[0]]))


def _draw_bands(axis: Axes, mask: np.ndarray, rate: float,
                **style: float | str) -> None:
    """Shade where a mask [T] of steps holds."""
    edges = np.flatnonzero(np.diff(np.pad(mask.astype(np.int8), 1)))
    for start, end in edges.reshape(-1, 2) / rate:
        axis.axvspan(start, end, **style)


def draw_score_curves(path: str | Path, times: np.ndarray,
                      scores: np.ndarray, names: Sequence[str], rate: float,
                      truth: np.ndarray | None = None,
                      events: Sequence[dict] = (),
                      ignore: Sequence[int] = (0, ),
                      caption: str = '') -> None:
    """Write a picture: for each class a row with its score over time.

    A band is where the class takes place by the ground truth; a bar at the
    bottom is an event that was told of. Where steps are left out, so is the
    curve.

    Args:
        path: The picture, a png.
        times: Ends of the steps, in seconds, [T].
        scores: Probabilities, [T, K].
        names: Of the K classes.
        rate: Steps a second.
        truth: 0 or 1 for each step of the video from its start, [T', K].
        events: Those that ended, with ``index``, ``start`` and ``end``.
        ignore: Classes that are not shown.
        caption: Above all.

    Raises:
        ValueError: If there is no step, or the truth is of other classes.
    """
    if not len(times):
        raise ValueError('there are no scores to draw: the stream ended '
                         'before its first step')
    if truth is not None and (truth.ndim != 2
                              or truth.shape[1] != scores.shape[1]):
        raise ValueError(f'the ground truth must be [steps, {scores.shape[1]}'
                         f'], got {list(truth.shape)}')
    shown = choose_classes(scores, truth, ignore)
    # A step that is missing breaks the line.
    gaps = np.flatnonzero(np.diff(times) > 1.5 / rate) + 1
    at = np.insert(times, gaps, np.nan)
    figure = Figure(figsize=(WIDTH_INCHES, ROW_INCHES * len(shown) + 0.9),
                    layout='constrained')
    axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for row, (axis, i) in enumerate(zip(axes, shown)):
        color = f'C{row}'
        if truth is not None:
            _draw_bands(axis, truth[:, i] > 0, rate, color=color, alpha=0.18,
                        linewidth=0)
        axis.plot(at, np.insert(scores[:, i], gaps, np.nan), color=color,
                  linewidth=1.4)
        for event in events:
            if event['index'] == i:
                axis.plot([event['start'], event['end']], [-0.05, -0.05],
                          color=color, linewidth=4, solid_capstyle='butt')
        axis.set_ylim(-0.1, 1.05)
        axis.set_yticks([0, 0.5, 1])
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        axis.set_title(names[i], loc='left', fontsize=9, pad=3)
    axes[-1].set_xlim(max(0., times[0] - 1 / rate), times[-1])
    axes[-1].set_xlabel('seconds', fontsize=9)
    figure.suptitle(caption, fontsize=10)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
