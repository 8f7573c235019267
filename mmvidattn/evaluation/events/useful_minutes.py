# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Choice of the minutes of unlabeled videos that are most useful to label."""
import math
from collections import Counter
from collections.abc import Container, Mapping
from typing import NamedTuple

import numpy as np

from ...online.frame_scores import FrameScores
from ...utils.arguments import Count, Positive, check_arguments

# Seconds before and after a step whose scores are compared with its own.
NEIGHBORHOOD = 1.


class Minute(NamedTuple):
    """Part of a video, and why it is useful.

    Attributes:
        video: Name of the video.
        start: First second.
        end: Last second.
        uncertainty: Mean uncertainty of its steps, in [0, 1].
        disagreement: Mean disagreement of its steps, in [0, 1].
    """
    video: str
    start: float
    end: float
    uncertainty: float
    disagreement: float

    @property
    def usefulness(self) -> float:
        """Sum of uncertainty and disagreement."""
        return self.uncertainty + self.disagreement


@check_arguments
def useful_minutes(videos: Mapping[str, FrameScores], number: Count = 10,
                   ignore: Container[int] = (), seconds: Positive = 60.,
                   per_video: Count | None = None) -> list[Minute]:
    """Choose the minutes of videos that are most useful to label.

    The idea is AL-STAL (Li et al., "Active learning with effective scoring
    functions for semi-supervised temporal action localization", Displays
    2023, doi:10.1016/j.displa.2023.102434): label where predictions have a
    high entropy, and where predictions that are close in time disagree.

    Differs from the paper: it scores steps instead of proposals, and minutes
    instead of videos. With the binary entropy ``h(p)`` in bits, step ``t``
    and class ``k`` have

    * the uncertainty ``h(p[t, k])``,
    * the disagreement ``h(mean(p)) - mean(h(p))`` over the steps within one
      second of ``t``, the Jensen-Shannon divergence of their probabilities.
      It is 0 for equal scores, and 1 if half of them are 0 and half are 1.

    A step's uncertainty and disagreement are the maxima over the classes, and
    a minute's are the means over its steps. Videos are cut into minutes from
    their start; a rest of less than half a minute is left out, unless it is
    the entire video. The minutes with the largest sums of uncertainty and
    disagreement are chosen, at most ``per_video`` of each video.

    Args:
        videos: Probabilities of each video's steps.
        number: Maximum number of minutes.
        ignore: Indices of classes that are not actions.
        seconds: Length of a minute.
        per_video: Maximum number of minutes of a video. Defaults to twice the
            number that each video would have in equal shares, rounded up.

    Returns:
        The most useful minutes, best first.

    Raises:
        ValueError: If there are no videos, or no classes that are actions.
    """
    if not videos:
        raise ValueError('videos must not be empty')
    if per_video is None:
        per_video = math.ceil(2 * number / len(videos))
    minutes = [minute for name, scores in videos.items()
               for minute in _minutes(name, scores, ignore, seconds)]
    # A stable sort: earlier minutes first, where the usefulness is equal.
    minutes.sort(key=lambda minute: -minute.usefulness)
    counts: Counter[str] = Counter()
    chosen = []
    for minute in minutes:
        counts[minute.video] += 1
        if counts[minute.video] <= per_video:
            chosen.append(minute)
    return chosen[:number]


def entropy(p: np.ndarray) -> np.ndarray:
    """Return the binary entropy of probabilities, in bits."""
    q = 1 - p
    return -(p * np.log2(np.where(p > 0, p, 1))
             + q * np.log2(np.where(q > 0, q, 1)))


def disagreement(p: np.ndarray, reach: int) -> np.ndarray:
    """Return how much the scores of each class vary around each step.

    The measure is the Jensen-Shannon divergence of the probabilities within
    ``reach`` of the step.

    Args:
        p: Probabilities [T, K], float64.
        reach: Number of steps before and after a step that are compared.

    Returns:
        Divergence in bits, [T, K].
    """
    return np.maximum(0, entropy(_mean_around(p, reach))
                      - _mean_around(entropy(p), reach))


def _mean_around(x: np.ndarray, reach: int) -> np.ndarray:
    """Average each step with its neighbors, fewer at both ends."""
    sums = np.cumsum(np.concatenate([np.zeros_like(x[:1]), x]), 0)
    steps = np.arange(len(x))
    first = np.maximum(steps - reach, 0)
    last = np.minimum(steps + reach + 1, len(x))
    mean = (sums[last] - sums[first]) / (last - first)[:, None]
    # Rounding errors could lead out of [0, 1].
    return np.clip(mean, 0, 1)


def _minutes(name: str, scores: FrameScores, ignore: Container[int],
             seconds: float) -> list[Minute]:
    rate, p = scores
    actions = [k for k in range(p.shape[1]) if k not in ignore]
    if not actions:
        raise ValueError('ignore must leave at least one class')
    p = np.clip(p[:, actions].astype(np.float64), 0, 1)
    if not len(p):
        return []
    unsure = entropy(p).max(1)
    disagree = disagreement(p, max(1, round(NEIGHBORHOOD * rate))).max(1)
    length = max(1, round(seconds * rate))
    minutes = []
    for first in range(0, len(p), length):
        last = min(first + length, len(p))
        if 2 * (last - first) < length and first:
            continue
        minutes.append(Minute(
            name, first / rate, last / rate,
            float(unsure[first:last].mean()),
            float(disagree[first:last].mean())))
    return minutes
