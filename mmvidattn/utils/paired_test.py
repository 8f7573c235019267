# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Paired test of two models that were trained with the same seeds.

The test uses the differences of the two models' scores for the same seed. It
is applied after 4, 8 and 12 seeds, each time with a t interval of the mean
difference at the level 1 - 0.05 / 3. All three intervals together hold with a
probability of 95 % (Bonferroni).
"""
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LOOKS = (4, 8, 12)
# Smaller differences, in points, count as no difference.
MARGIN = 1.
LEVEL = 1 - 0.05 / len(LOOKS)


@dataclass(frozen=True)
class Verdict:
    """Verdict on the differences of two models.

    Attributes:
        mean: Mean difference in points, first minus second model.
        half: Half the width of its interval; infinite with one seed.
        seeds: Number of differences.
        difference: 'above', 'below' or 'none' (less than a point in either
            direction), or '' if undecided.
    """
    mean: float
    half: float
    seeds: int
    difference: str


def decide(differences: Sequence[float], equal: bool = False) -> Verdict:
    """Return the verdict on differences, without regard to earlier tests.

    Args:
        differences: Difference of each seed in points.
        equal: Return 'none' instead of 'above' or 'below' if the difference
            is proven to be less than a point. Defaults to False.

    Raises:
        ValueError: If `differences` is empty.
    """
    from scipy import stats
    count = len(differences)
    if not count:
        raise ValueError('a verdict needs the differences of at least one '
                         'seed')
    mean = statistics.fmean(differences)
    half = math.inf
    if count > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)
                     * statistics.stdev(differences) / math.sqrt(count))
    inside, off_zero = abs(mean) + half < MARGIN, abs(mean) > half
    difference = ''
    if count >= LOOKS[0]:
        if off_zero and not (equal and inside):
            difference = 'above' if mean > 0 else 'below'
        elif inside:
            difference = 'none'
    return Verdict(mean, half, count, difference)


def decide_early(differences: Sequence[float],
                 equal: bool = False) -> Verdict | None:
    """Return the first decisive verdict, or else the last one.

    Later seeds, which other comparisons may need, are ignored. Returns None
    without differences.
    """
    verdict = decide(differences[:LOOKS[0]], equal) if differences else None
    for look in LOOKS[1:]:
        if len(differences) < look or verdict.difference:
            break
        verdict = decide(differences[:look], equal)
    return verdict


def paired_differences(first: Mapping[int, float],
                       second: Mapping[int, float]) -> list[float]:
    """Return the differences for each seed that both models have."""
    return [first[seed] - second[seed] for seed in sorted(first)
            if seed in second]
