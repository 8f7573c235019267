# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Calibration of the scores of frames or steps."""
from collections.abc import Sequence

import numpy as np

from ...utils.arguments import Count, check_arguments
from .labeled_events import VideoMetric

NUM_BINS = 15


@check_arguments
class Calibration(VideoMetric):
    """Expected calibration error (ECE) and Brier score of frame scores.

    A score of 0.7 is calibrated if the class is present in 70 % of the frames
    with this score. ECE is, for one class, the mean distance between score and
    frequency over bins of equal width, weighted by their number of frames
    (`Guo et al. <https://arxiv.org/abs/1706.04599>`_, Eq. 3). The Brier score
    is the mean squared difference between the score and 0 or 1. Both are
    computed for each class separately, because several classes may be present
    in a frame, and averaged over the classes. The values are 'ECE' and
    'Brier'.

    Differs from the paper: its ECE only uses the most probable class of each
    sample, and whether it is right.

    Args:
        scores: Probabilities of each of V videos, [T, K].
        targets: 1 where a class is present, else 0, [T, K].
        num_bins: Number of bins. Defaults to 15.

    Raises:
        ValueError: If the shapes differ, or a score is not in [0, 1].
    """

    def __init__(self, scores: Sequence[np.ndarray],
                 targets: Sequence[np.ndarray],
                 num_bins: Count = NUM_BINS) -> None:
        parts = []
        for p, y in zip(scores, targets, strict=True):
            p, y = np.asarray(p, float), np.asarray(y, float)
            if p.shape != y.shape or p.ndim != 2:
                raise ValueError('scores and targets must have one shape '
                                 f'[T, K], got {p.shape} and {y.shape}')
            if not ((p >= 0) & (p <= 1)).all():
                raise ValueError('scores must be probabilities in [0, 1], got '
                                 f'{p.min():g} to {p.max():g}')
            number = p.shape[1]
            bins = np.minimum((p * num_bins).astype(int), num_bins - 1)
            place = (bins + num_bins * np.arange(number)).ravel()
            parts.append([
                np.bincount(place, each, number * num_bins).reshape(
                    number, num_bins)
                for each in (np.ones(p.size), p.ravel(), y.ravel())
            ] + [((p - y)**2).sum(axis=0)])
        self.num_videos = len(parts)
        # Number of frames in each bin, and sums of their scores and of their
        # targets, [V, K, num_bins]; sum of squared differences, [V, K].
        self.count, self.score, self.positive, self.squares = (
            np.array(each) for each in zip(*parts)) if parts else (
                np.zeros((0, 0, num_bins)), ) * 3 + (np.zeros((0, 0)), )

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        count, score, positive, squares = self._sums(
            weights, self.count, self.score, self.positive, self.squares)
        number = count.sum(axis=1)
        if not number.size or not number.all():
            return dict(ECE=float('nan'), Brier=float('nan'))
        errors = np.abs(score - positive).sum(axis=1) / number
        return dict(ECE=float(errors.mean()),
                    Brier=float((squares / number).mean()))
