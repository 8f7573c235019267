# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Decide claims by a rule that is fixed before the runs.

Rows are compared by the paired test of :mod:`mmvidattn.utils.paired_test`. A
seed has the same clips in the same order, and the same initial weights where
models share them.
"""
from dataclasses import dataclass

from mmvidattn.utils.paired_test import (
    Verdict,
    decide_early,
    paired_differences,
)
from tools.studies.study import Claim

# Figures by row and seed.
Scores = dict[str, dict[int, dict[str, float]]]


@dataclass(frozen=True)
class ClaimVerdict(Verdict):
    """Verdict on a claim.

    Attributes:
        word: 'agrees', 'disagrees' or 'undecided'.
    """
    word: str


def verdict_of(claim: Claim, scores: Scores) -> ClaimVerdict | None:
    """Return the verdict on a claim; None if the rows share no seed."""
    verdict = decide_early(paired_differences(*(
        {seed: result[metric] for seed, result in scores[row].items()
         if metric in result} for row, metric in (
             (claim.better, claim.metric),
             (claim.worse, claim.worse_metric or claim.metric)))),
        claim.equal)
    if verdict is None:
        return None
    word = 'undecided'
    if verdict.difference:
        agrees = verdict.difference == ('none' if claim.equal else 'above')
        word = 'agrees' if agrees else 'disagrees'
    return ClaimVerdict(**vars(verdict), word=word)
