# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""EPIC-Kitchens-100's metric of action anticipation."""
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log

from ..utils.arguments import Count, check_arguments, check_finite, check_type
from .per_frame_map import only_mode, stream_cost
from .segment_scores import (
    SegmentScores,
    SegmentSubset,
    read_actions,
    read_clip_scores,
    read_segment_scores,
    stack_scores,
)


def mean_top_k_recall(scores: np.ndarray, labels: np.ndarray,
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


@METRICS.register_module()
@check_arguments
class MeanTopKRecall(BaseMetric):
    """Class-mean top-k recall of actions, verbs and nouns over segments.

    It evaluates samples of :class:`mmvidattn.datasets.FeatureStreamDataset`
    with ``windows='segments'``, or with ``windows='stream'`` and a segment
    file. The dataset's ``protocol`` selects the window of each segment and the
    row whose scores count, and is part of the names of the results, such as
    ``action_top5_recall_strict``, ``verb_top5_recall_testra_tail`` and
    ``noun_top5_recall_testra_stream_window``. The result of the actions comes
    first. With ``parts``, it evaluates clips of
    :class:`mmvidattn.datasets.VideoSegmentDataset`. A segment that starts too
    early to be anticipated has zero scores. Segments without labels (test sets
    of a challenge) are left out.

    If the model lacks verb and noun classifiers, their scores are sums of the
    softmax of the actions.

    Args:
        k: Number of highest scores that count. Defaults to 5.
        actions: Verb and noun of each action, ``[(verb, noun), ...]``, or a
            CSV file with columns ``id``, ``verb`` and ``noun``. Needed for
            models without verb and noun classifiers, and for lists of
            segments without actions, such as ``EPIC_100_validation.csv``.
        subsets: File or list of the segments of each subset:
            ``dict(unseen=..., tail_action=..., tail_verb=...,
            tail_noun=...)``. See
            :class:`~mmvidattn.evaluation.segment_scores.SegmentSubset`.
        parts: For clips: ``parts`` of the head, such as ``dict(noun=300,
            verb=97, action=3806)``. Results are called
            ``action_top5_recall_clip`` and so on. Defaults to None.
        **kwargs: Arguments of mmengine's ``BaseMetric``.
    """

    default_prefix = 'online'

    def __init__(self,
                 k: Count = 5,
                 actions: str | Sequence[tuple[int, int]] | None = None,
                 subsets: Mapping[str, Any] | None = None,
                 parts: Mapping[str, Count] | None = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k = k
        self.parts_of_action = None if actions is None else read_actions(
            actions)
        self.subsets = [SegmentSubset(*each)
                        for each in (subsets or {}).items()]
        self.parts = parts

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Store the scores of each segment."""
        for sample in data_samples:
            # Append one result per sample, as mmengine expects when it gathers
            # the results of all ranks.
            self.results.append(dict(
                mode='clip' if self.parts else sample['evaluation_mode'],
                segments=[read_clip_scores(sample, self.parts)] if self.parts
                else read_segment_scores(sample),
                stream_cost=sample.get('stream_cost')))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        mode = only_mode(results)
        recalls = {}
        segments = [segment for result in results
                    for segment in result['segments'] if segment.labels]
        if segments:
            recalls = self._recalls(segments, mode)
        else:
            print_log('Skipping recall: all segments are unlabeled.',
                      'current')
        return recalls | stream_cost(
            result['stream_cost'] for result in results)

    def _label(self, segment: SegmentScores, part: str) -> int:
        """Return a segment's label; derive the action from verb and noun."""
        if part in segment.labels:
            return segment.labels[part]
        if part != 'action' or self.parts_of_action is None:
            raise ValueError(
                f'segment {segment.id} has no {part} label'
                + ('; set actions to the verb and noun of each action'
                   if part == 'action' else ''))
        verb, noun = segment.labels['verb'], segment.labels['noun']
        rows = np.flatnonzero(
            (self.parts_of_action == (verb, noun)).all(axis=1))
        # An action that is not listed gets a unique negative label, which no
        # prediction can match.
        return int(rows[0]) if len(rows) else -1000 * verb - noun - 1

    def _recalls(self, segments: list, mode: str) -> dict[str, float]:
        inside = {subset: subset.mask((s.id, s.labels) for s in segments)
                  for subset in self.subsets}
        recalls = {}
        scores = stack_scores(segments, self.parts_of_action)
        for part, each in scores.items():
            labels = np.array([self._label(s, part) for s in segments])
            name = f'{part}_top{self.k}_recall_{mode}'
            recalls[name] = mean_top_k_recall(each, labels, self.k)
            for subset, mask in inside.items():
                if subset.part in (None, part):
                    recalls[f'{name}_{subset.name}'] = mean_top_k_recall(
                        each[mask], labels[mask], self.k)
        return recalls
