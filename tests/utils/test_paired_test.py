# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from scipy import stats

from mmvidattn.utils.paired_test import (
    decide,
    decide_early,
    paired_differences,
)


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
        low, high = stats.ttest_1samp(values, 0).confidence_interval(
            1 - 0.05 / 3)
        assert verdict.mean - verdict.half == pytest.approx(low)
        assert verdict.mean + verdict.half == pytest.approx(high)


def test_first_deciding_test_counts():
    assert decide_early([5, 6, 5, 6] + [-50] * 8).seeds == 4
    # Seeds between two tests are ignored.
    wide = [9, -9, 9, -9, 9]
    assert decide_early(wide).seeds == 4
    assert decide_early([*wide, 5, 5, 5]).seeds == 8
    assert decide_early([]) is None
    assert paired_differences({0: 3., 1: 5., 2: 1.}, {2: 1., 1: 1.}) == [4, 0]
