# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from scipy import stats

from mmvidattn.utils.paired_test import decide, decide_early


@pytest.mark.parametrize('values, difference', [
    ([5, 6, 5, 6], 'above'), ([-5, -6, -5, -6], 'below'),
    ([.1, -.1, .1, -.1], 'none'),
    # Less than a point, but significantly above zero.
    ([.5, .51, .5, .51], 'above'), ([9, -9, 9, -9], ''),
    (np.random.default_rng(0).normal(1, 3, 12), ''),
    # Three seeds never decide.
    ([5, 6, 5], ''), ([5], '')])
def test_rule_uses_the_interval_of_scipy(values, difference):
    verdict = decide(values)
    assert verdict.difference == difference
    if len(values) > 1:
        interval = stats.ttest_1samp(values, 0).confidence_interval(
            1 - .05 / 3)
        assert (verdict.mean - verdict.half, verdict.mean + verdict.half
                ) == pytest.approx(tuple(interval))


@pytest.mark.parametrize('differences, seeds, mean', [
    ([5, 6, 5, 6] + [-50] * 8, 4, 5.5),
    # Seeds between two tests are ignored.
    ([9, -9, 9, -9, 9], 4, 0), ([9, -9, 9, -9, 9, 5, 5, 5], 8, 3)])
def test_first_deciding_test_counts(differences, seeds, mean):
    # The first model lacks seed 0, and the second one seed 99.
    first = {i + 1: 50 + value for i, value in enumerate(differences)}
    verdict = decide_early(first | {99: 0.}, dict.fromkeys(
        [*first][::-1], 50) | {0: 7.})
    assert (verdict.seeds, verdict.mean) == (seeds, mean)
    assert decide_early({1: 5.}, {2: 5.}) is None
