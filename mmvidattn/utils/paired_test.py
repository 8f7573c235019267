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
        difference: 'above' or 'below', or 'none' (less than a point in either
            direction), or '' if undecided.
    """
    mean: float
    half: float
    seeds: int
    difference: str


def decide(differences: Sequence[float]) -> Verdict:
    """Return the verdict on each seed's difference in points, at least one.

    Earlier tests are disregarded.
    """
    from scipy import stats
    count, mean, half = len(differences), statistics.fmean(differences), (
        math.inf)
    if count > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)
                     * statistics.stdev(differences) / math.sqrt(count))
    difference = ''
    if count >= LOOKS[0]:
        if abs(mean) > half:
            difference = 'above' if mean > 0 else 'below'
        elif abs(mean) + half < MARGIN:
            difference = 'none'
    return Verdict(mean, half, count, difference)


def decide_early(first: Mapping[int, float],
                 second: Mapping[int, float]) -> Verdict | None:
    """Return the first decisive verdict on two models, or else the last one.

    The arguments are the scores of the two models by seed. Later seeds, which
    other comparisons may need, are ignored. Return None without a common seed.
    """
    differences = [first[seed] - second[seed]
                   for seed in sorted(first.keys() & second.keys())]
    verdict = None
    for look in LOOKS:
        if verdict and (len(differences) < look or verdict.difference):
            break
        verdict = decide(differences[:look]) if differences else None
    return verdict
