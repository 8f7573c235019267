# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from mmvidattn.finetune.report import (
    format_labels,
    measure_labels,
    tune_label_thresholds,
)


@pytest.mark.parametrize('seed', range(5))
def test_thresholds_have_the_best_f1(seed):
    rng = np.random.default_rng(seed)
    # Few values, so that there are ties.
    scores = rng.integers(0, 8, (15, 3)) / 10
    labels = rng.random((15, 3)) < [.2, .6, 0]
    labels[0, :2] = True
    thresholds = tune_label_thresholds(scores, labels)
    assert thresholds[2] == 0.5
    for k in 0, 1:
        best = max(f1_score(labels[:, k], scores[:, k] >= threshold)
                   for threshold in np.linspace(0, 1, 101))
        assert f1_score(labels[:, k], scores[:, k] >= thresholds[k]) == (
            pytest.approx(best))


def test_threshold_separates_the_scores():
    scores = np.array([[.1], [.2], [.6], [.9]])
    labels = np.array([[False], [False], [True], [True]])
    assert tune_label_thresholds(scores, labels) == pytest.approx([.4])


def test_metrics_match_scikit_learn():
    rng = np.random.default_rng(0)
    scores, labels = rng.random((30, 4)), rng.random((30, 4)) < .4
    labels[:, 3] = False
    thresholds = np.array([.2, .5, .7, .5])
    metrics = measure_labels(scores, labels, thresholds, list('abcd'))
    aps = [average_precision_score(labels[:, k], scores[:, k])
           for k in range(3)]
    assert [one['ap'] for one in metrics['classes']] == pytest.approx(
        [*aps, None])
    assert metrics['mean_average_precision'] == pytest.approx(np.mean(aps))
    for name, limit in ('f1', thresholds), ('f1_untuned', .5):
        predicted = scores >= limit
        assert metrics[name] == pytest.approx(
            f1_score(labels, predicted, average='micro'))
        assert [one[name] for one in metrics['classes']][:3] == pytest.approx(
            f1_score(labels, predicted, average=None, zero_division=0)[:3])
    lines = format_labels(metrics).splitlines()
    assert len(lines) == 6 and lines[4].split()[:3] == ['d', '0', '-']
