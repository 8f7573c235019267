# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Mean recall of the labels among the highest scores."""
from collections.abc import Collection

import numpy as np

from ..utils.checks import check_finite


def mean_top_k_recall(scores: np.ndarray,
                      labels: np.ndarray,
                      k: int = 5,
                      classes: Collection[int] | None = None) -> float:
    """Share of each class' segments whose label is in the top k, averaged.

    The measure of EPIC-Kitchens-100's anticipation. Of equal scores the
    higher class is the better, as in RULSTM's code.

    Args:
        scores: ``(S, K)``, a row a segment.
        labels: ``(S,)`` class ids.
        k: How many of the highest scores count.
        classes: The classes to average over, of those that occur. Defaults
            to all of them.

    Returns:
        In [0, 1]; nan if no class is left.
    """
    scores, labels = np.asarray(scores), np.asarray(labels)
    if scores.ndim != 2 or labels.shape != scores.shape[:1]:
        raise ValueError('scores must be (S, K) and labels (S,), got '
                         f'{scores.shape} and {labels.shape}')
    check_finite(scores=scores)
    if k < 1:
        raise ValueError(f'k must be at least 1, got {k}')
    top = np.argsort(scores, axis=1, kind='stable')[:, ::-1][:, :k]
    hit = (top == labels[:, None]).any(axis=1)
    present = set(labels.tolist())
    if classes is not None:
        present &= set(classes)
    if not present:
        return float('nan')
    return float(np.mean([hit[labels == c].mean() for c in sorted(present)]))


def marginal_scores(scores: np.ndarray, part: np.ndarray,
                    num_parts: int) -> np.ndarray:
    """Scores of verbs, or nouns, from those of actions.

    Args:
        scores: Logits of actions, ``(S, K)``.
        part: The verb, or noun, of each action, ``(K,)``.
        num_parts: Number of verbs, or nouns, ``P``.

    Returns:
        Sums of the actions' softmax, ``(S, P)``.
    """
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return weight @ np.eye(num_parts)[np.asarray(part)]
