# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images of scores over time, of events, and of models by seed."""
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .style import class_color, save_figure

# Start, end and class of an event.
Event = tuple[float, float, str]
WIDTH_INCHES, ROW_INCHES, BARS_INCHES = 12., 1.25, .32
MAX_CURVES = 8
# The most videos and classes that can be told apart in one image.
MAX_VIDEOS, MAX_CLASSES = 12, 20
# Classes whose scores stay below this are not drawn.
MIN_PEAK = 0.1


def choose_classes(scores: np.ndarray,
                   ignore: Sequence[int] = (0, )) -> list[int]:
    """Choose 1 to ``MAX_CURVES`` classes with the highest peaks, to draw them.

    Classes of the scores [T, K] that never reach ``MIN_PEAK``, and those in
    ``ignore``, are left out.
    """
    rank = np.nanmax(scores, axis=0)
    rank[list(ignore)] = -1
    best = np.argsort(-rank, kind='stable')[:MAX_CURVES]
    return sorted(int(i) for i in best
                  if rank[i] >= min(MIN_PEAK, rank[best[0]]))


def draw_score_curves(path: str | Path, times: np.ndarray,
                      scores: np.ndarray, names: Sequence[str], rate: float,
                      events: Sequence[dict] = (),
                      ignore: Sequence[int] = (0, ),
                      caption: str = '') -> None:
    """Write an image with a row for each class that shows its score.

    Bars at the bottom mark events. The curve has a gap where steps are
    missing.

    Args:
        path: Path of the image, a png.
        times: End time of each step in seconds, [T].
        scores: Probabilities [T, K].
        names: Names of the K classes.
        rate: Steps per second.
        events: Completed actions, with ``index``, ``start`` and ``end``.
            Defaults to ().
        ignore: Classes to leave out. Defaults to (0, ).
        caption: Caption of the image. Defaults to ''.

    Raises:
        ValueError: If T = 0.
    """
    if not len(times):
        raise ValueError('cannot draw scores: the stream ended before its '
                         'first step')
    shown = choose_classes(scores, ignore)
    # NaN breaks the line where steps are missing.
    gaps = np.flatnonzero(np.diff(times) > 1.5 / rate) + 1
    at = np.insert(times, gaps, np.nan)
    figure = Figure(figsize=(WIDTH_INCHES, ROW_INCHES * len(shown) + 0.9),
                    layout='constrained')
    axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axis, i in zip(axes, shown):
        # The number among the actions.
        color = class_color(i - sum(k < i for k in ignore))
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
    save_figure(figure, path)


def draw_timelines(path: str | Path,
                   videos: Mapping[str, tuple[Sequence[Event],
                                              Sequence[Event]]],
                   classes: Sequence[str]) -> None:
    """Write an image with two rows of bars for each video and class.

    The upper row has the annotated events, the lower one the predicted events.

    Args:
        path: Path of the image.
        videos: Annotated and predicted events of each video; the first
            ``MAX_VIDEOS`` are drawn.
        classes: Actions of the model; the first ``MAX_CLASSES`` that have
            events are drawn.
    """
    videos = dict(list(videos.items())[:MAX_VIDEOS])
    found = {label for both in videos.values() for events in both
             for *_, label in events}
    shown = [name for name in classes if name in found][:MAX_CLASSES]
    rows = max(1, len(shown))
    figure = Figure(
        figsize=(WIDTH_INCHES, len(videos) * (rows * BARS_INCHES + .7) + .3),
        layout='constrained')
    axes = figure.subplots(len(videos), 1, squeeze=False)[:, 0]
    for axis, (name, (true, predicted)) in zip(axes, videos.items()):
        for events, place, alpha in (true, .02, .45), (predicted, .46, 1.):
            for start, end, label in events:
                if label in shown:
                    # A point must be visible, too.
                    axis.broken_barh(
                        [(start, end - start)],
                        (shown.index(label) + place, .42), alpha=alpha,
                        color=class_color(classes.index(label)), linewidth=1)
        axis.set_ylim(rows, 0)
        axis.set_yticks(np.arange(len(shown)) + .45, shown,
                        parse_math=False, fontsize=8)
        axis.set_title(name, loc='left', fontsize=9, parse_math=False)
        axis.grid(axis='x', alpha=.3)
        axis.tick_params(labelsize=8)
    axes[-1].set_xlabel('seconds (upper bars: annotated, lower bars: '
                        'predicted)')
    save_figure(figure, path)


def draw_score_rows(rows: Mapping[str, Sequence[float]],
                    limits: Mapping[str, float], label: str) -> Figure:
    """Draw models from top to bottom: a dot per seed, a line at the mean.

    Args:
        rows: Scores by model.
        limits: Scores reached without training, drawn as dotted lines.
        label: Label of the scores.
    """
    figure = Figure(figsize=(7, 1.2 + 0.3 * len(rows)), layout='constrained')
    axes = figure.subplots()
    for place, values in enumerate(reversed(rows.values())):
        axes.plot(values, [place] * len(values), 'o', color='C0', alpha=0.4,
                  markersize=5, markeredgewidth=0)
        if values:
            axes.plot([statistics.fmean(values)], [place], '|', color='k',
                      markersize=14, markeredgewidth=2)
    for name, score in limits.items():
        axes.axvline(score, color='gray', linestyle=':')
        axes.annotate(name, (score, len(rows) - 0.4), fontsize=8,
                      ha='center', va='bottom', annotation_clip=False)
    axes.set_yticks(range(len(rows)), reversed(rows), parse_math=False)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel(label)
    axes.grid(axis='x', alpha=0.3)
    return figure
