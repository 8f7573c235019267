# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Image of the scores of several models, each trained with several seeds."""
import statistics
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure


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
