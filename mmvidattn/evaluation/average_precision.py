# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of the scores of one class."""
import numpy as np

from ..utils.checks import check_finite


def average_precision(positive: np.ndarray, score: np.ndarray) -> float:
    """Precision at each recall that is reached, as scikit-learn sums it.

    Equal scores are one threshold.

    Args:
        positive: Which steps are of the class, bool ``(T,)``.
        score: ``(T,)``.

    Returns:
        In [0, 1]; nan without a positive.
    """
    positive, score = _check(positive, score)
    if not positive.any():
        return float('nan')
    order = np.argsort(-score, kind='stable')
    # The last of each run of equal scores.
    ordered = score[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(score) - 1)
    hits = np.cumsum(positive[order])[ends]
    precision = hits / (ends + 1)
    recall = hits / hits[-1]
    return float((np.diff(recall, prepend=0) * precision).sum())


def calibrated_average_precision(positive: np.ndarray,
                                 score: np.ndarray) -> float:
    """Average precision as if there were as many positives as negatives.

    `Online action detection <https://arxiv.org/abs/1604.06506>`_, Eq. 1:
    precision is TP / (TP + FP / w), where w is the number of negatives of
    each positive. The mean is over the positives; equal scores stay in the
    order of time.

    Args:
        positive: Which steps are of the class, bool ``(T,)``.
        score: ``(T,)``.

    Returns:
        In [0, 1]; nan without a positive.
    """
    positive, score = _check(positive, score)
    if not positive.any():
        return float('nan')
    tiny = np.finfo(np.float64).eps
    hit = positive[np.argsort(-score, kind='stable')]
    # As released: a class without negatives, or a weight of 0, divides by it.
    weight = (~hit).sum() / hit.sum()
    true, false = np.cumsum(hit), np.cumsum(~hit)
    precision = true / (true + false / (weight + tiny) + tiny)
    return float(precision[hit].sum() / hit.sum())


AVERAGE_PRECISIONS = dict(
    AP=average_precision, cAP=calibrated_average_precision)


def stage_masks(positive: np.ndarray) -> np.ndarray:
    """Which steps of the actions of one class are in each tenth of them.

    As released, the last step of a run of positives is in none of its tenths,
    and a tenth has one step at least.

    Args:
        positive: Which steps of a video are of the class, bool ``(T,)``.

    Returns:
        bool ``(10, T)``, from the first tenth to the last.
    """
    edges = np.diff(np.concatenate([[0], positive, [0]]).astype(int))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    masks = np.zeros((10, len(positive)), dtype=bool)
    for start, end in zip(starts, ends):
        for tenth, mask in enumerate(masks):
            # Of tenths: 0.1 * 3 is not 0.3, as released.
            first = start + int((end - start) * (tenth * 0.1))
            last = start + int((end - start) * ((tenth + 1) * 0.1))
            mask[first:max(first + 1, last)] = True
    return masks


def _check(positive: np.ndarray,
           score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    positive = np.asarray(positive).astype(bool)
    score = np.asarray(score, dtype=np.float64)
    if positive.shape != score.shape or positive.ndim != 1:
        raise ValueError('positive and score must be of one shape (T,), got '
                         f'{positive.shape} and {score.shape}')
    check_finite(score=score)
    return positive, score
