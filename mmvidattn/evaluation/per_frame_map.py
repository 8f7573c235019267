# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Mean average precision over all steps of all videos."""
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric

from ..utils.arguments import Natural, check_arguments
from ..utils.checks import check_finite
from .average_precision import AVERAGE_PRECISIONS, stage_masks


def stream_cost(costs: Iterable[dict | None]) -> dict[str, float]:
    """Summarize the cost of streams.

    Args:
        costs: ``stream_cost`` of each data sample, as set by
            :class:`mmvidattn.recognizers.OnlineActionDetector`; None if the
            sample was not evaluated as a stream.

    Returns:
        ``stream_steps_per_second``, steps divided by seconds over all streams,
        and ``stream_state_bytes``, the size of the largest state. Empty if no
        sample was evaluated as a stream.
    """
    costs = [cost for cost in costs if cost is not None]
    if not costs:
        return {}
    steps, seconds = (
        sum(cost[key] for cost in costs) for key in ('steps', 'seconds'))
    return dict(
        stream_steps_per_second=steps / seconds,
        stream_state_bytes=max(cost['state_bytes'] for cost in costs))


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
        """Return all results by name."""
        modes = sorted({result['mode'] for result in results})
        if len(modes) != 1:
            raise ValueError('all windows must have the same evaluation mode, '
                             f'got {", ".join(modes)}')
        name = f'm{self.metric}_{modes[0]}'
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
