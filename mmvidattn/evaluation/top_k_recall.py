# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Class-mean top-k recall."""
import numpy as np

from ..utils.arguments import Count, check_type
from ..utils.checks import check_finite


def mean_top_k_recall(scores: np.ndarray,
                      labels: np.ndarray,
                      k: int = 5) -> float:
    """Compute top-k recall per class, averaged over the classes in `labels`.

    This is the metric of EPIC-Kitchens-100 action anticipation. Among equal
    scores, the class with the higher number ranks first, as in RULSTM's code.

    Args:
        scores: Scores ``(S, K)`` of S segments.
        labels: Class numbers ``(S,)``.
        k: Number of highest scores that count. Defaults to 5.

    Returns:
        A number in [0, 1]; nan for S = 0.
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    if scores.ndim != 2 or labels.shape != scores.shape[:1]:
        raise ValueError('scores must be (S, K) and labels (S,), got '
                         f'{scores.shape} and {labels.shape}')
    check_finite(scores=scores)
    check_type('k', k, Count)
    top = np.argsort(scores, axis=1, kind='stable')[:, ::-1][:, :k]
    hit = (top == labels[:, None]).any(axis=1)
    if not len(labels):
        return float('nan')
    return float(np.mean([hit[labels == c].mean() for c in np.unique(labels)]))


def marginal_scores(scores: np.ndarray, part: np.ndarray,
                    num_parts: int) -> np.ndarray:
    """Marginalize action scores over verbs or nouns.

    Args:
        scores: Logits of actions, ``(S, K)``.
        part: Verb (or noun) of each action, ``(K,)``.
        num_parts: Number of verbs (or nouns) P.

    Returns:
        Sums of the actions' softmax, ``(S, P)``.
    """
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return weight @ np.eye(num_parts)[np.asarray(part)]
