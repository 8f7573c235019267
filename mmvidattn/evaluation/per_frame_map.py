# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Mean average precision over all steps of all videos."""
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric

from ..datasets.feature_streams import find_runs
from ..utils.arguments import Natural, check_arguments, check_finite


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


def stream_cost(costs: Iterable[dict | None]) -> dict[str, float]:
    """Return steps per second over all streams, and the largest state.

    Args:
        costs: ``stream_cost`` of each data sample, as set by
            :class:`mmvidattn.recognizers.OnlineActionDetector`; None if the
            sample was not evaluated as a stream.
    """
    costs = [cost for cost in costs if cost is not None]
    if not costs:
        return {}
    steps, seconds = (
        sum(cost[key] for cost in costs) for key in ('steps', 'seconds'))
    return dict(
        stream_steps_per_second=steps / seconds,
        stream_state_bytes=max(cost['state_bytes'] for cost in costs))


def only_mode(results: Iterable[dict]) -> str:
    """Return the ``mode`` of all results.

    Raises:
        ValueError: If they have several modes.
    """
    modes = sorted({result['mode'] for result in results})
    if len(modes) != 1:
        raise ValueError('all samples must have the same evaluation mode or '
                         f'protocol, got {", ".join(modes)}')
    return modes[0]


@METRICS.register_module()
@check_arguments
class PerFrameMAP(BaseMetric):
    """Per-frame mean average precision of online detection and anticipation.

    It evaluates ``pred_action`` of the model on samples of
    :class:`mmvidattn.datasets.FeatureStreamDataset`. The kind of window
    decides which of its steps count, and is part of the names of the results:

    * ``mAP_dense``, which the papers report, uses one window per step;
    * ``mAP_non_overlapping`` uses windows that do not overlap;
    * ``mAP_stream_window`` and ``mAP_stream_smoothing`` use streams with one
      of two kernels; ``stream_steps_per_second`` and ``stream_state_bytes``
      are added.

    With anticipation tokens, there is also a result for each horizon, such as
    ``mAP_dense@0.25s``, and their mean ``mAP_dense@mean``. As in the released
    code, the first steps of a video, which no earlier window could anticipate,
    use the scores of the video's first window.

    Args:
        metric: ``'AP'``, or ``'cAP'``, the calibrated AP of TVSeries.
            Defaults to ``'AP'``.
        background_index: Class to leave out; None to keep all. Defaults to 0.
        ignore_index: Class to leave out, with all steps that show it, such as
            21, "Ambiguous" of THUMOS'14. Defaults to None.
        per_stage: Also report the mean for each tenth of the actions. Defaults
            to False.
        per_class: Also report each class, by name if the dataset has names.
            Defaults to False.
        **kwargs: Arguments of mmengine's ``BaseMetric``.
    """

    default_prefix = 'online'

    def __init__(self,
                 metric: Literal[tuple(AVERAGE_PRECISIONS)] = 'AP',
                 background_index: Natural | None = 0,
                 ignore_index: Natural | None = None, per_stage: bool = False,
                 per_class: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metric = metric
        self.background_index = background_index
        self.ignore_index = ignore_index
        self.per_stage = per_stage
        self.per_class = per_class

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Store the scores and targets of each window that count."""
        for sample in data_samples:
            self.results.append(dict(
                mode=sample['evaluation_mode'], video=sample['video_name'],
                length=sample['video_length'], horizons=sample['horizons'],
                stream_cost=sample.get('stream_cost'),
                parts=read_scores(sample)))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        name = f'm{self.metric}_{only_mode(results)}'
        videos = gather_steps(results, 0)
        values = self._evaluate(name, videos, self.per_stage, self.per_class)
        horizons = results[0]['horizons']
        for token, seconds in enumerate(horizons):
            videos = gather_steps(results, token + 1)
            values.update(self._evaluate(f'{name}@{seconds:g}s', videos))
        if horizons:
            values[f'{name}@mean'] = float(
                np.mean([values[f'{name}@{s:g}s'] for s in horizons]))
        values.update(stream_cost(result['stream_cost'] for result in results))
        return values

    def _evaluate(self, name: str, videos: list[tuple[np.ndarray, np.ndarray]],
                  per_stage: bool = False, per_class: bool = False
                  ) -> dict[str, float]:
        # 1. Join the videos.
        scores = np.concatenate([v[0] for v in videos])
        targets = np.concatenate([v[1] for v in videos])
        # 2. Compute the AP of each class that occurs.
        keep = np.ones(len(targets), dtype=bool)
        if self.ignore_index is not None:
            keep = targets[:, self.ignore_index] != 1
        average_precision = AVERAGE_PRECISIONS[self.metric]
        positive = targets == 1
        classes = [c for c in range(targets.shape[1])
                   if c not in (self.background_index, self.ignore_index)
                   and positive[keep, c].any()]
        each = {c: average_precision(positive[keep, c], scores[keep, c])
                for c in classes}
        if not each:
            raise ValueError('no step has a class that counts')
        # 3. Average over the classes.
        averages = {name: float(np.mean(list(each.values())))}
        if per_class:
            names = (self.dataset_meta or {}).get('classes')
            for c, value in each.items():
                label = names[c] if names else c
                averages[f'{name[1:]}_{label}'] = value
        if per_stage:
            stages = np.zeros((10, len(classes)))
            for i, c in enumerate(classes):
                masks = np.concatenate(
                    [stage_masks(v[1][:, c] == 1) for v in videos], axis=1)
                for tenth, mask in enumerate(masks):
                    used = keep & (~positive[:, c] | mask)
                    stages[tenth, i] = average_precision(
                        mask[used], scores[used, c])
            for tenth, value in enumerate(np.nanmean(stages, axis=1)):
                key = f'{name}_stage_{10 * tenth}-{10 * tenth + 10}'
                averages[key] = float(value)
        return averages


# Steps (n,), scores (n, K) and targets (n, K).
Part = tuple[np.ndarray, np.ndarray, np.ndarray]


def read_scores(sample: dict) -> list[Part]:
    """Read the scores that count in a window, or in a whole video.

    Args:
        sample: Data sample as a dict.

    Returns:
        A ``Part`` for detection, then one for each anticipation token.

    Raises:
        ValueError: If a score is not finite, or the shapes differ.
    """
    scores, targets = (
        sample[key].float().cpu().numpy()
        for key in ('pred_action', 'gt_action'))
    rows, steps = sample['score_rows'], np.asarray(sample['score_steps'])
    if sample['is_whole_video']:
        # A video shorter than the work memory is padded with repeated steps.
        scores = scores[:len(targets)]
    if scores.shape != targets.shape:
        raise ValueError(
            f'{sample["video_name"]}: pred_action must be {targets.shape} '
            f'like gt_action, got {scores.shape}')
    name = f'pred_action of {sample["video_name"]}'
    check_finite(**{name: scores})
    parts = [(steps, scores[rows], targets[rows])]
    ahead = np.asarray(sample['anticipation_steps'])
    if not ahead.size:
        return parts
    num_work, length = sample['num_work'], sample['video_length']
    if sample['is_whole_video']:
        anticipated = sample['pred_anticipated_action'].float().cpu().numpy()
        check_finite(**{f'anticipated {name}': anticipated})
        # A stream also anticipates before its first full window; drop these
        # rows.
        anticipated = anticipated[-len(ahead):]
        truth = targets[ahead.clip(max=length - 1)]
    else:
        ahead = ahead[None]
        anticipated, truth = scores[None, num_work:], targets[None, num_work:]
    # As in the released code, the first steps of a video, which no window
    # anticipates, get the scores of the first window.
    num_known = num_work if sample['is_first_window'] else 0
    windows = ahead, anticipated, truth
    for token in range(ahead.shape[1]):
        num_before = token if sample['is_first_window'] else 0
        part = [
            np.concatenate([now[:num_known], x[0, :num_before], x[:, token]])
            for now, x in zip(parts[0], windows)]
        # There are no targets after the end of the video.
        inside = part[0] < length
        parts.append(tuple(x[inside] for x in part))
    return parts


def gather_steps(results: list[dict],
                 part: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Gather the scores of windows by video; later windows overwrite.

    Args:
        results: Results of the windows.
        part: 0 for detection; 1, 2, ... for the anticipation tokens.

    Returns:
        Scores and targets of each video, ``(T, K)``, for all steps that have
        scores.
    """
    videos = {}
    for result in results:
        steps, scores, targets = result['parts'][part]
        if result['video'] not in videos:
            shape = (result['length'], targets.shape[1])
            videos[result['video']] = (np.zeros(shape, scores.dtype),
                                       np.zeros(shape, targets.dtype),
                                       np.zeros(result['length'], dtype=bool))
        for place, rows in zip(videos[result['video']],
                               (scores, targets, True)):
            place[steps] = rows
    return [(s[known], t[known]) for s, t, known in videos.values()]
