# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Confidence intervals by resampling of videos."""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...utils.arguments import Fraction, Natural, check_arguments


class Interval(NamedTuple):
    """Value with a confidence interval; nan where it is undefined."""
    value: float
    low: float
    high: float


@check_arguments
def bootstrap(values: Callable[[np.ndarray], dict[str, float]],
              num_videos: Natural, draws: Natural = 1000,
              level: Fraction = .95, seed: Natural = 0) -> dict[str, Interval]:
    """Compute confidence intervals by the percentile bootstrap over videos.

    Each draw takes ``num_videos`` videos with replacement, because frames and
    events of one video depend on each other. Draws in which a value is
    undefined are left out.

    Args:
        values: Function from the number of times that each video counts,
            int [V], to values by name.
        num_videos: Number of videos V. With fewer than 2, intervals are nan.
        draws: Number of draws. 0 computes only the values.
        level: Probability of the interval. Defaults to 0.95.
        seed: Seed of the draws. Defaults to 0.
    """
    full = values(np.ones(num_videos, int))
    drawn: list[dict[str, float]] = []
    if num_videos > 1:
        rng = np.random.default_rng(seed)
        share = np.full(num_videos, 1 / num_videos)
        drawn = [values(rng.multinomial(num_videos, share))
                 for _ in range(draws)]
    intervals = {}
    for name, value in full.items():
        all_values = np.array([each[name] for each in drawn])
        known = all_values[~np.isnan(all_values)]
        low, high = (np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
                     if len(known) else (np.nan, np.nan))
        intervals[name] = Interval(float(value), float(low), float(high))
    return intervals
