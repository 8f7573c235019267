# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images about the events of videos."""
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .style import class_color, class_line, save_figure

# Start, end and class of an event.
Event = tuple[float, float, str]
WIDTH_INCHES, ROW_INCHES = 12., .32
# The most videos and classes that can be told apart in one image.
MAX_VIDEOS, MAX_CLASSES = 12, 20


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
        figsize=(WIDTH_INCHES, len(videos) * (rows * ROW_INCHES + .7) + .3),
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


def draw_precision_recall(path: str | Path,
                          curves: Mapping[str, tuple[np.ndarray, np.ndarray,
                                                     float]],
                          caption: str, classes: Sequence[str]) -> None:
    """Write an image with a precision-recall curve for each class.

    Args:
        path: Path of the image.
        curves: Recall [N], precision [N] and average precision of each class;
            the first ``MAX_CLASSES`` are drawn.
        caption: Caption of the image.
        classes: Actions of the model.
    """
    figure = Figure(figsize=(7, 5), layout='constrained')
    axis = figure.subplots()
    for name, (recall, precision, value) in list(
            curves.items())[:MAX_CLASSES]:
        k = classes.index(name)
        axis.plot(np.append(0, recall), np.append(precision[:1], precision),
                  color=class_color(k), linestyle=class_line(k),
                  label=f'{name} ({value:.2f})'.replace('$', r'\$'))
    axis.set(xlim=(0, 1.02), ylim=(0, 1.05), xlabel='recall',
             ylabel='precision')
    axis.grid(alpha=.3)
    if curves:
        axis.legend(fontsize=8, title='class (average precision)')
    axis.set_title(caption, fontsize=10)
    save_figure(figure, path)


def draw_delays(path: str | Path, delays: np.ndarray, num_missed: int) -> None:
    """Write a histogram of detection delays.

    Args:
        path: Path of the image.
        delays: Delays in seconds, [N].
        num_missed: Number of actions that were not detected.
    """
    figure = Figure(figsize=(7, 4), layout='constrained')
    axis = figure.subplots()
    if len(delays):
        axis.hist(delays, bins=min(30, max(5, len(delays) // 2)), color='C0')
        axis.axvline(float(np.median(delays)), color='k', linestyle='--',
                     label=f'median {np.median(delays):.2f} s')
        axis.legend(fontsize=8)
    axis.set_xlabel('seconds from the start of an action to the start of its '
                    'event')
    axis.set_ylabel('actions')
    axis.set_title(f'{len(delays)} detected actions, {num_missed} missed',
                   fontsize=10)
    axis.grid(alpha=.3)
    save_figure(figure, path)


def draw_reliability(path: str | Path, count: np.ndarray, score: np.ndarray,
                     frequency: np.ndarray, caption: str) -> None:
    """Write a reliability diagram: how often a class occurs at each score.

    Args:
        path: Path of the image.
        count: Number of frames in each bin of scores, [num_bins].
        score: Mean score of each bin, [num_bins]; nan if it is empty.
        frequency: Share of frames that show the class, [num_bins].
        caption: Caption of the image.
    """
    figure = Figure(figsize=(5, 6), layout='constrained')
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    known = count > 0
    upper.plot([0, 1], [0, 1], color='gray', linestyle=':')
    upper.plot(score[known], frequency[known], marker='o', color='C0')
    upper.set_ylabel('share of frames with the class')
    upper.set_title(caption, fontsize=10)
    upper.grid(alpha=.3)
    number = len(count)
    lower.bar((np.arange(number) + .5) / number, count, 1 / number,
              color='C0', alpha=.5, edgecolor='w')
    lower.set(yscale='log', xlabel='score', ylabel='frames')
    save_figure(figure, path)
