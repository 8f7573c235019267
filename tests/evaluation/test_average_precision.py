# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.evaluation import (
    average_precision,
    calibrated_average_precision,
    stage_masks,
)


@pytest.fixture(params=[None, 1, 0], ids=['plain', 'ties', 'many ties'])
def case(request):
    rng = np.random.default_rng(0)
    score = rng.normal(size=501)
    positive = rng.random(501) < 0.2
    if request.param is not None:
        score = score.round(request.param)
    return positive, score


def test_matches_scikit_learn(case):
    metrics = pytest.importorskip('sklearn.metrics')
    wanted = metrics.average_precision_score(*case)
    assert average_precision(*case) == pytest.approx(wanted, abs=1e-12)


def test_matches_naive(case):
    positive, score = case
    total, before = 0, 0
    for threshold in sorted({*score}, reverse=True):
        chosen = score >= threshold
        recall = (chosen & positive).sum() / positive.sum()
        total += (recall - before) * positive[chosen].mean()
        before = recall
    assert average_precision(*case) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize('score, want', [
    ([-np.inf] * 3, 1 / 3), ([np.inf] * 3, 1 / 3),
    ([np.inf, np.inf, -np.inf], 1 / 2), ([-np.inf, 0, 1], 1 / 3)])
def test_equal_infinities_are_one_threshold(score, want):
    assert average_precision([1, 0, 0], score) == pytest.approx(want)
    finite = np.nan_to_num(np.array(score), posinf=9, neginf=-9)
    assert average_precision([1, 0, 0], finite) == pytest.approx(want)


def test_calibrated_matches_naive():
    rng = np.random.default_rng(1)
    score, positive = rng.normal(size=301), rng.random(301) < 0.1
    weight = (~positive).sum() / positive.sum()
    total = 0
    for s in score[positive]:
        chosen = score >= s
        true = (chosen & positive).sum()
        total += true / (true + (chosen & ~positive).sum() / weight)
    found = calibrated_average_precision(positive, score)
    assert found == pytest.approx(total / positive.sum(), abs=1e-12)


def test_calibration_does_not_depend_on_the_number_of_negatives():
    positive = np.array([1, 0, 1, 0])
    score = np.array([4., 3, 2, 1])
    more = np.repeat([0, 1, 2, 3], [1, 100, 1, 100])
    assert calibrated_average_precision(positive, score) == pytest.approx(5/6)
    assert calibrated_average_precision(
        positive[more], score[more]) == pytest.approx(5 / 6)


@pytest.mark.parametrize('function',
                         [average_precision, calibrated_average_precision])
def test_perfect_and_absent(function):
    assert function([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx(1)
    assert np.isnan(function([0, 0], [1, 2]))
    with pytest.raises(ValueError, match='one shape'):
        function([0, 1], [1, 2, 3])
    with pytest.raises(ValueError, match='got nan'):
        function([0, 1], [1, np.nan])


def test_stages_are_tenths_of_each_action():
    positive = np.zeros(60, bool)
    positive[5:26] = True
    positive[40:43] = True
    masks = stage_masks(positive)
    # 21 steps are ten tenths of two, and the last one in none.
    for tenth in range(10):
        steps = np.flatnonzero(masks[tenth])
        assert steps[:2].tolist() == [5 + 2 * tenth, 6 + 2 * tenth]
        # Three steps are tenths of one step each.
        assert len(steps) == 3 and 40 <= steps[2] < 42
    assert not masks[:, [25, 42]].any()
