# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""When a claim is decided, by a rule that is fixed before the runs.

Rows are compared by the differences of their scores, seed by seed: a seed has
the same clips in the same order, and the same initial weights where models
share them. Claims are looked at after 4, 8 and 12 seeds. A look is a t
interval of the mean difference at the level of 1 - 0.05 / 3, so that all
three hold together with 95 % (Bonferroni).
"""
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

LOOKS = (4, 8, 12)
# In points: differences below are called none.
MARGIN = 1.
LEVEL = 1 - 0.05 / len(LOOKS)


@dataclass(frozen=True)
class Verdict:
    """What the differences of a claim say.

    Attributes:
        mean: Mean difference in points, better less worse.
        half: Half the width of its interval; infinite with one seed.
        seeds: Number of differences.
        difference: 'above', 'below' or 'none' (less than a point either
            way), or '' while it is open.
        word: 'agrees', 'disagrees' or 'undecided'.
    """
    mean: float
    half: float
    seeds: int
    difference: str
    word: str


def decide(differences: Sequence[float], equal: bool = False) -> Verdict:
    """What is to be said of a claim.

    Args:
        differences: Of each seed, in points: the row that the paper finds
            better less the other.
        equal: The paper finds both alike.

    Raises:
        ValueError: If there are no differences.
    """
    count = len(differences)
    if not count:
        raise ValueError('a claim takes the differences of one seed or more')
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


def decided_at_looks(differences: Sequence[float],
                     equal: bool = False) -> Verdict:
    """The verdict of the first look that decides, else of the last one.

    Seeds that a row has beyond that look, for other claims, don't count.
    """
    verdict = None
    for look in LOOKS:
        if verdict is not None and len(differences) < look:
            break
        verdict = decide(differences[:look], equal)
        if verdict.word != 'undecided':
            break
    return verdict
