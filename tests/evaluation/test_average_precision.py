# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.evaluation import (
    average_precision,
    calibrated_average_precision,
    stage_masks,
)


@pytest.mark.parametrize('digits', [9, 1, 0])
def test_matches_the_definition_of_scikit_learn(digits):
    """With fewer digits, there are more ties."""
    rng = np.random.default_rng(0)
    score, positive = rng.normal(size=301).round(digits), rng.random(301) < 0.2
    total = last = 0
    for threshold in sorted(set(score), reverse=True):
        chosen = score >= threshold
        recall = positive[chosen].sum() / positive.sum()
        total += (recall - last) * positive[chosen].mean()
        last = recall
    assert average_precision(positive, score) == pytest.approx(
        total, abs=1e-12)
    # The example of scikit-learn's documentation.
    assert average_precision([0, 0, 1, 1], [.1, .4, .35, .8]) == (
        pytest.approx(5 / 6))


def test_calibrated_matches_naive():
    rng = np.random.default_rng(1)
    score, positive = rng.normal(size=301), rng.random(301) < 0.1
    weight = (~positive).sum() / positive.sum()
    total = 0
    for s in score[positive]:
        chosen = score >= s
        true = (chosen & positive).sum()
        total += true / (true + (chosen & ~positive).sum() / weight)
    result = calibrated_average_precision(positive, score)
    assert result == pytest.approx(total / positive.sum(), abs=1e-12)


@pytest.mark.parametrize('function',
                         [average_precision, calibrated_average_precision])
def test_perfect_absent_and_invalid_scores(function):
    assert function([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx(1)
    assert np.isnan(function([0, 0], [1, 2]))
    with pytest.raises(ValueError, match=r'shape .*got \(2,\) and \(3,\)'):
        function([0, 1], [1, 2, 3])
    for bad in np.nan, np.inf, -np.inf:
        with pytest.raises(ValueError, match='score .*1 of 2'):
            function([0, 1], [1, bad])


def test_stages_are_tenths_of_each_action():
    positive = np.zeros(60, bool)
    positive[5:26] = True
    positive[40:43] = True
    masks = stage_masks(positive)
    # 21 steps make ten tenths of two steps; the last step is in no tenth.
    for tenth in range(10):
        steps = np.flatnonzero(masks[tenth])
        assert steps[:2].tolist() == [5 + 2 * tenth, 6 + 2 * tenth]
        # An action of three steps has tenths of one step.
        assert len(steps) == 3 and 40 <= steps[2] < 42
    assert not masks[:, [25, 42]].any()
