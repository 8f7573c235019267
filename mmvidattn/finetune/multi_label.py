# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Thresholds and metrics of a classifier with several labels per clip."""
from collections.abc import Sequence
from typing import Any

import numpy as np
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ..apis.labels import probabilities
from ..evaluation.average_precision import average_precision
from ..utils.unwrap import unwrap
from .report import percent

UNTUNED = 0.5


class CollectProbabilitiesHook(Hook):
    """Collect results of each test video, in a single process.

    Attributes:
        scores: Probabilities of the K classes, [K] for each video.
        labels: True labels, bool [K] for each video.
    """

    def __init__(self) -> None:
        self.scores: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []

    def after_test_iter(self, runner: Runner, batch_idx: int,
                        data_batch: dict, outputs: list) -> None:
        model = unwrap(runner.model)
        for sample in outputs:
            self.scores.append(
                probabilities(model, sample.pred_score).numpy())
            self.labels.append(sample.gt_label.cpu().numpy() > 0)


def tune_label_thresholds(scores: np.ndarray, labels: np.ndarray
                          ) -> np.ndarray:
    """Return the threshold of each class with the highest F1, [K].

    Thresholds lie midway between scores. If several are equally good, the
    middle one is taken. A class without positives gets 0.5.

    Args:
        scores: Probabilities, [N, K].
        labels: True labels, bool [N, K].
    """
    found = np.full(scores.shape[1], UNTUNED)
    for k in np.flatnonzero(labels.any(axis=0)):
        values = np.unique(scores[:, k])
        middles = (np.append(0, values[:-1]) + values) / 2
        predicted = scores[:, k, None] >= middles
        hits = (predicted & labels[:, k, None]).sum(axis=0)
        f1 = 2 * hits / (predicted.sum(axis=0) + labels[:, k].sum())
        best = middles[np.isclose(f1, f1.max())]
        found[k] = best[len(best) // 2]
    return found


def measure_labels(scores: np.ndarray, labels: np.ndarray,
                   thresholds: np.ndarray, classes: Sequence[str]
                   ) -> dict[str, Any]:
    """Compute the mAP, and AP and F1 of each class; undefined ones are None.

    Args:
        scores: Probabilities, [N, K].
        labels: True labels, bool [N, K].
        thresholds: Threshold of each class, [K].
        classes: Names of the K classes.
    """
    def f1(predicted: np.ndarray, true: np.ndarray) -> float | None:
        number = int(predicted.sum() + true.sum())
        return 2 * int((predicted & true).sum()) / number if number else None

    by_class = [dict(
        name=name, videos=int(true.sum()),
        ap=float(average_precision(true, score)) if true.any() else None,
        threshold=round(float(threshold), 4), f1=f1(score >= threshold, true),
        f1_untuned=f1(score >= UNTUNED, true))
        for name, score, true, threshold in zip(
            classes, scores.T, labels.T, thresholds)]
    known = [one['ap'] for one in by_class if one['ap'] is not None]
    return dict(
        videos=len(scores),
        mean_average_precision=sum(known) / len(known) if known else None,
        f1=f1(scores >= thresholds, labels),
        f1_untuned=f1(scores >= UNTUNED, labels), classes=by_class)


def format_labels(metrics: dict[str, Any]) -> str:
    """Format the metrics as a table."""
    width = max(len('class'), *(len(one['name'])
                                for one in metrics['classes']))
    lines = [f'{"class":{width}}  videos     AP  threshold     F1  F1 at 0.5']
    lines += [
        f'{one["name"]:{width}}  {one["videos"]:6}  {percent(one["ap"]):>5}  '
        f'{one["threshold"]:9.3f}  {percent(one["f1"]):>5}  '
        f'{percent(one["f1_untuned"]):>9}' for one in metrics['classes']]
    lines.append(
        f'mAP {percent(metrics["mean_average_precision"])} %, F1 of all '
        f'classes {percent(metrics["f1"])} % (at {UNTUNED}: '
        f'{percent(metrics["f1_untuned"])} %), {metrics["videos"]} videos')
    return '\n'.join(lines)
