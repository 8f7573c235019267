# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores of annotated segments, and subsets such as unseen and tail."""
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.logging import print_log

from ..datasets.annotations.published import read_rulstm_actions
from ..utils.arguments import check_finite
from ..utils.text_files import read_lines

# The action comes first because the first result selects the best checkpoint.
PARTS = ('action', 'verb', 'noun')
# Maps the heading of a list file to the type of its lines.
HEADINGS = {
    **{name: 'id' for name in ('id', 'narration_id', 'segment_id',
                               'participant_id', 'video_id')},
    **{f'{part}{end}': part for part in PARTS for end in ('', '_class')}}


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


def read_clip_scores(sample: dict, parts: Mapping[str, int]) -> SegmentScores:
    """Read the scores of a clip, the sample of a recognizer.

    Args:
        sample: Sample with ``segment_id``, scores ``pred_score`` and labels
            ``gt_label`` of the classes of all parts, ``(K,)``.
        parts: Number of classes of each part, in order.

    Raises:
        ValueError: If the number of scores or labels is not the sum of
            ``parts``, or a score is not finite.
    """
    check_finite(pred_score=sample['pred_score'])
    values = {}
    for key in 'pred_score', 'gt_label':
        if len(sample[key]) != sum(parts.values()):
            raise ValueError(f'{key} must have the {sum(parts.values())} '
                             f'classes of parts, got {len(sample[key])}')
        each = sample[key].float().cpu().split([*parts.values()])
        values[key] = {part: one.numpy() for part, one in zip(parts, each)}
    labels = {part: int(one.argmax())
              for part, one in values['gt_label'].items() if one.any()}
    return SegmentScores(str(sample['segment_id']), labels, True,
                         values['pred_score'])


def _score(sample: dict, place: int | None, identity: Any,
           labels: dict[str, int], rows: list[int]) -> SegmentScores:
    scores = {}
    for part in PARTS:
        if f'pred_{part}' not in sample:
            continue
        all_rows, row = sample[f'pred_{part}'], rows[0] if rows else 0
        if place is not None:
            if row > 0:
                all_rows, row = sample[f'pred_anticipated_{part}'], row - 1
            else:
                all_rows = all_rows[:, None]
            all_rows = all_rows[place]
        # Class 0 is the background, which no segment has.
        each = all_rows[row, 1:].float().cpu().numpy()
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


class SegmentSubset:
    """Subset of the segments, selected by ids or by classes.

    An id in a list names a segment (``P18_01_0``) or is a prefix of ids: a
    participant (``P18``) or a video (``P18_01``). A file lists one id or one
    class per line. An optional heading names the type (``narration_id``,
    ``participant_id``, ``verb``, ``noun``, ...); without a heading, lines are
    ids. The lists of RULSTM and of EPIC-KITCHENS-100 are both supported.

    Args:
        name: Name of the subset. If it ends with ``action``, ``verb`` or
            ``noun`` (such as ``tail_verb``), the subset applies only to
            results of this part.
        members: File, or list of ids.

    Raises:
        ValueError: If a file does not exist, or a line is invalid.

    Attributes:
        name: Name without the part.
        part: Part that the subset applies to; None for all parts.
    """

    def __init__(self, name: str, members: str | Sequence) -> None:
        stem, _, last = name.rpartition('_')
        self.name, self.part = (stem, last) if last in PARTS else (name, None)
        self.full_name = name
        kind, members = read_list(members) if isinstance(
            members, (str, Path)) else ('id', members)
        self._kind = kind
        self._members = {str(one) if kind == 'id' else int(one)
                         for one in members}

    def mask(self, segments: Iterable[tuple[Any, Mapping[str, int]]]
             ) -> np.ndarray:
        """Return which segments are in the subset; warn if none is.

        Args:
            segments: Id and labels of each of S segments.

        Returns:
            Mask, bool ``(S,)``.

        Raises:
            ValueError: If the subset lists ids, and an id is None.
        """
        inside = np.array([self._has(*segment) for segment in segments], bool)
        if not inside.any():
            print_log(
                f'subsets: {self.full_name} matches 0 of {len(inside)} '
                'segments, so its results are nan', 'current',
                logging.WARNING)
        return inside

    def _has(self, identity: Any, labels: Mapping[str, int]) -> bool:
        if self._kind != 'id':
            return labels.get(self._kind) in self._members
        if identity is None:
            raise ValueError(
                f'subsets: {self.full_name} is a list of ids, but the samples '
                'lack a segment_id')
        words = str(identity).split('_')
        return any('_'.join(words[:n]) in self._members
                   for n in range(1, len(words) + 1))


def read_list(path: str | Path) -> tuple[str, list[str]]:
    """Read a file with one id or one class per line.

    Returns:
        Type according to the heading ('id' or a part; 'id' without a heading),
        and the other lines.

    Raises:
        ValueError: If the file does not exist, or a line is invalid.
    """
    if not Path(path).is_file():
        raise ValueError(f'subsets: {path} does not exist')
    lines = [line.strip() for line in read_lines(path)]
    heading = HEADINGS.get(lines[0].lower()) if lines else None
    pattern = r'\w[\w.-]*' if heading in (None, 'id') else r'\d+'
    entries = lines if heading is None else lines[1:]
    for number, line in enumerate(entries, 1 + len(lines) - len(entries)):
        if line and not re.fullmatch(pattern, line):
            raise ValueError(
                f'{path}, line {number}: {line!r} is not a segment id or a '
                'class number')
    return heading or 'id', [line for line in entries if line]
