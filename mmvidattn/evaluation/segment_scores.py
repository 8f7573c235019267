# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores of annotated segments, read from samples of windows or streams."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets.annotations.published import read_rulstm_actions
from ..utils.checks import check_finite

# The action comes first because the first result selects the best checkpoint.
PARTS = ('action', 'verb', 'noun')


@dataclass(frozen=True)
class SegmentScores:
    """A model's scores of a segment, without the background class.

    Attributes:
        id: Id of the segment, e.g. ``P01_01_0``.
        labels: Class of each part; empty for a segment without labels.
        seen: True if the model could see a step early enough to anticipate the
            segment. If not, the scores are zero.
        scores: Scores ``(K,)`` of each part that the model predicts.
    """
    id: str
    labels: dict[str, int]
    seen: bool
    scores: dict[str, np.ndarray]


def read_segment_scores(sample: dict) -> list[SegmentScores]:
    """Read the scores of the segments of a sample.

    Args:
        sample: Sample of :class:`mmvidattn.datasets.FeatureStreamDataset` as
            a dict: the window of a segment, or a video that was evaluated as
            a stream, with any number of segments.

    Raises:
        ValueError: If the sample lacks segments, or a score is not finite.
    """
    if sample['segment_labels'] is None:
        raise ValueError(
            f'{sample["video_name"]}: the sample must have segment_labels; '
            "set windows='segments' in the dataset")
    each = [sample[key]
            for key in ('segment_id', 'segment_labels', 'score_rows')]
    if sample.get('is_whole_video'):
        return [_score(sample, i, *one) for i, one in enumerate(zip(*each))]
    return [_score(sample, None, *each)]


def _score(sample: dict, place: int | None, identity: Any,
           labels: dict[str, int], rows: list[int]) -> SegmentScores:
    scores = {}
    for part in PARTS:
        if f'pred_{part}' not in sample:
            continue
        all_rows = sample[f'pred_{part}']
        if place is not None:
            all_rows = all_rows[place][None]
            if rows and rows[0] > 0:
                ahead = sample[f'pred_anticipated_{part}'][place]
                all_rows, rows = ahead, [rows[0] - 1]
        # Class 0 is the background, which no segment has.
        each = all_rows[rows[0] if rows else 0, 1:].float().cpu().numpy()
        if rows:
            check_finite(**{f'pred_{part} of segment {identity}': each})
        scores[part] = each if rows else np.zeros_like(each)
    return SegmentScores(str(identity), labels, bool(rows), scores)


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


def stack_scores(
        segments: Sequence[SegmentScores],
        parts_of_action: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Stack the scores of segments, and add verb and noun scores.

    Args:
        segments: The S segments.
        parts_of_action: Verb and noun of each action, ``(K, 2)``. If the model
            lacks verb and noun classifiers, their scores are sums of the
            softmax of the actions.

    Returns:
        Scores ``(S, K)`` of each part, in the order of ``PARTS``.
    """
    scores = {part: np.stack([segment.scores[part] for segment in segments])
              for part in segments[0].scores}
    if parts_of_action is not None:
        seen = np.array([segment.seen for segment in segments])
        for i, part in enumerate(PARTS[1:]):
            if part not in scores:
                of_action = parts_of_action[:, i]
                scores[part] = marginal_scores(scores['action'], of_action,
                                               of_action.max() + 1)
                scores[part][~seen] = 0
    return {part: scores[part] for part in PARTS if part in scores}


def read_actions(actions: str | Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the verb and noun of each action, ``(K, 2)``.

    Args:
        actions: Pairs (verb, noun), or the path of RULSTM's ``actions.csv``.
    """
    if not isinstance(actions, str):
        return np.asarray(actions)
    return np.array([parts for _, *parts in read_rulstm_actions(actions)])
