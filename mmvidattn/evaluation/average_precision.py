# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of the scores of one class."""
import numpy as np

from ..datasets.feature_streams import find_runs
from ..utils.checks import check_finite


def average_precision(positive: np.ndarray, score: np.ndarray) -> float:
    """Compute the average precision of one class, like scikit-learn.

    Steps with equal scores share one threshold.

    Args:
        positive: Mask of the steps that show the class, bool ``(T,)``.
        score: Scores ``(T,)``.

    Returns:
        A number in [0, 1]; nan if no step shows the class.
    """
    positive, score = _check(positive, score)
    if not positive.any():
        return float('nan')
    order = np.argsort(-score, kind='stable')
    # The last position of each run of equal scores.
    ordered = score[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(score) - 1)
    hits = np.cumsum(positive[order])[ends]
    precision = hits / (ends + 1)
    recall = hits / hits[-1]
    return float((np.diff(recall, prepend=0) * precision).sum())


def calibrated_average_precision(positive: np.ndarray,
                                 score: np.ndarray) -> float:
    """Compute average precision with positives and negatives balanced.

    `Online action detection <https://arxiv.org/abs/1604.06506>`_, Eq. 1:
    precision is TP / (TP + FP / w), where w is the number of negatives per
    positive. The mean is over the positive steps. Steps with equal scores are
    ranked in temporal order. See :func:`average_precision` for arguments and
    result.
    """
    positive, score = _check(positive, score)
    if not positive.any():
        return float('nan')
    tiny = np.finfo(np.float64).eps
    hit = positive[np.argsort(-score, kind='stable')]
    # As in the released code, a tiny number avoids division by zero, also for
    # a class without negatives.
    weight = (~hit).sum() / hit.sum()
    true, false = np.cumsum(hit), np.cumsum(~hit)
    precision = true / (true + false / (weight + tiny) + tiny)
    return float(precision[hit].sum() / hit.sum())


AVERAGE_PRECISIONS = dict(
    AP=average_precision, cAP=calibrated_average_precision)


def stage_masks(positive: np.ndarray) -> np.ndarray:
    """Divide each action of one class into ten stages.

    A stage is a tenth of an action. As in the released code, the last step of
    an action belongs to no stage, and each stage has at least one step.

    Args:
        positive: Mask of the steps of a video that show the class, bool
            ``(T,)``.

    Returns:
        Masks of the steps in each stage, bool ``(10, T)``.
    """
    masks = np.zeros((10, len(positive)), dtype=bool)
    for start, end in find_runs(positive):
        length = end - 1 - start
        for tenth, mask in enumerate(masks):
            # Multiply by 0.1 like the released code, because 0.1 * 3 != 0.3.
            first = start + int(length * (tenth * 0.1))
            last = start + int(length * ((tenth + 1) * 0.1))
            mask[first:max(first + 1, last)] = True
    return masks


def _check(positive: np.ndarray,
           score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    positive = np.asarray(positive).astype(bool)
    score = np.asarray(score, dtype=np.float64)
    if positive.shape != score.shape or positive.ndim != 1:
        raise ValueError('positive and score must have one shape (T,), got '
                         f'{positive.shape} and {score.shape}')
    check_finite(score=score)
    return positive, score
