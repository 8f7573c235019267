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

from tools.studies.study import Claim

LOOKS = (4, 8, 12)
# In points: differences below are called none.
MARGIN = 1.
LEVEL = 1 - 0.05 / len(LOOKS)

# Of each row the figures of each seed.
Scores = dict[str, dict[int, dict[str, float]]]


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


def differences(claim: Claim, scores: Scores) -> list[float]:
    """In points, of each seed that both rows have, in the order of seeds."""
    better, worse = ({
        seed: result[claim.metric]
        for seed, result in scores[row].items() if claim.metric in result
    } for row in (claim.better, claim.worse))
    return [better[seed] - worse[seed] for seed in sorted(better)
            if seed in worse]


def verdict_of(claim: Claim, scores: Scores) -> Verdict | None:
    """The verdict of the first look that decides, else of the last one.

    Seeds that two rows have beyond it, for other claims, don't count. None
    where the rows share no seed.
    """
    found = differences(claim, scores)
    verdict = decide(found[:LOOKS[0]], claim.equal) if found else None
    for look in LOOKS[1:]:
        if len(found) < look or verdict.word != 'undecided':
            break
        verdict = decide(found[:look], claim.equal)
    return verdict
