# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Decide claims by a rule that is fixed before the runs.

Rows are compared by the differences of their scores for the same seed. A seed
has the same clips in the same order, and the same initial weights where
models share them. A claim is tested after 4, 8 and 12 seeds, each time with a
t interval of the mean difference at the level 1 - 0.05 / 3, so that all three
intervals hold together with 95 % (Bonferroni).
"""
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from tools.studies.study import Claim

LOOKS = (4, 8, 12)
# Differences below this number of points count as none.
MARGIN = 1.
LEVEL = 1 - 0.05 / len(LOOKS)

# Figures by row and seed.
Scores = dict[str, dict[int, dict[str, float]]]


@dataclass(frozen=True)
class Verdict:
    """Verdict on a claim.

    Attributes:
        mean: Mean difference in points, better minus worse.
        half: Half the width of its interval; infinite with one seed.
        seeds: Number of differences.
        difference: 'above', 'below' or 'none' (less than a point in either
            direction), or '' if undecided.
        word: 'agrees', 'disagrees' or 'undecided'.
    """
    mean: float
    half: float
    seeds: int
    difference: str
    word: str


def decide(differences: Sequence[float], equal: bool = False) -> Verdict:
    """Decide a claim.

    Args:
        differences: Difference of each seed in points: the row that the paper
            reports as better minus the other row.
        equal: The paper reports both rows as equal. Defaults to False.

    Raises:
        ValueError: If `differences` is empty.
    """
    count = len(differences)
    if not count:
        raise ValueError('a claim needs the differences of at least one seed')
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
    if not difference:
        word = 'undecided'
    else:
        agrees = difference == ('none' if equal else 'above')
        word = 'agrees' if agrees else 'disagrees'
    return Verdict(mean, half, count, difference, word)


def differences(claim: Claim, scores: Scores) -> list[float]:
    """Return the differences in points, for each seed that both rows have."""
    better, worse = ({
        seed: result[claim.metric]
        for seed, result in scores[row].items() if claim.metric in result
    } for row in (claim.better, claim.worse))
    return [better[seed] - worse[seed] for seed in sorted(better)
            if seed in worse]


def verdict_of(claim: Claim, scores: Scores) -> Verdict | None:
    """Return the first verdict that decides, or else the last one.

    Further seeds, which other claims need, are ignored. The verdict is None
    if the rows share no seed.
    """
    found = differences(claim, scores)
    verdict = decide(found[:LOOKS[0]], claim.equal) if found else None
    for look in LOOKS[1:]:
        if len(found) < look or verdict.word != 'undecided':
            break
        verdict = decide(found[:look], claim.equal)
    return verdict
