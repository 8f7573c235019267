# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.evaluation import marginal_scores, mean_top_k_recall


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(80, 12))
    labels = rng.integers(9, size=80)
    return scores, labels


@pytest.mark.parametrize('k', [1, 5])
def test_matches_naive(case, k):
    scores, labels = case
    recalls = []
    for c in set(labels.tolist()):
        hits = [
            c in sorted(range(12), key=lambda i: -row[i])[:k]
            for row, label in zip(scores, labels) if label == c]
        recalls.append(sum(hits) / len(hits))
    assert mean_top_k_recall(scores, labels, k) == pytest.approx(
        np.mean(recalls))


def test_last_classes_win_ties():
    zeros = np.zeros((12, 12))
    hits = [mean_top_k_recall(zeros[:1], np.array([c])) for c in range(12)]
    assert hits == [0] * 7 + [1] * 5


def test_marginals_are_sums_of_softmax(case):
    scores, _ = case
    part = np.arange(12) % 4
    result = marginal_scores(scores, part, 5)
    soft = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    for p in range(4):
        np.testing.assert_allclose(result[:, p], soft[:, part == p].sum(1))
    assert not result[:, 4].any()


def test_invalid_input(case):
    scores, labels = case
    with pytest.raises(ValueError, match='k must .*got 0'):
        mean_top_k_recall(*case, k=0)
    with pytest.raises(ValueError, match=r'got \(80, 12\) and \(79,\)'):
        mean_top_k_recall(scores, labels[:79])
    scores[3, 1] = -np.inf
    with pytest.raises(ValueError, match='scores .*1 of'):
        mean_top_k_recall(scores, labels)
