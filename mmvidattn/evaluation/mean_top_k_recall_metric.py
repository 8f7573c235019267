# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""EPIC-Kitchens-100's measure of anticipation."""
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric

from .top_k_recall import marginal_scores, mean_top_k_recall

PARTS = ('action', 'verb', 'noun')


@METRICS.register_module()
class MeanTopKRecall(BaseMetric):
    """Mean top-5 recall of actions, verbs and nouns, a segment at a time.

    Reads the samples of :class:`mmvidattn.datasets.FeatureStreamDataset`
    with ``windows='segments'``, whose protocol chose the window of each
    segment and the row that counts. The names of the results end with that
    protocol: ``action_top5_recall_strict``, ``verb_top5_recall_testra_tail``.
    A segment that nothing was seen of in time has zero scores.

    Where the model has no verb and noun classifiers, their scores are sums
    of the actions' softmax.

    Args:
        k: How many of the highest scores count.
        actions: Of each action its verb and noun, ``[(verb, noun), ...]``, or
            a CSV file with columns ``id``, ``verb`` and ``noun``, for models
            without verb and noun classifiers.
        subsets: Ids of the segments of each subset, or a file of one id a
            line: ``dict(unseen=..., tail_action=..., tail_verb=...,
            tail_noun=...)``. A name that ends with a part is of that part,
            any other one of all.
        collect_device: Where ranks gather the scores.
        prefix: What the names of the results begin with.
    """

    default_prefix = 'online'

    def __init__(self,
                 k: int = 5,
                 actions: str | Sequence[tuple[int, int]] | None = None,
                 subsets: Mapping[str, str | Sequence[int]] | None = None,
                 collect_device: str = 'cpu',
                 prefix: str | None = None) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        if k < 1:
            raise ValueError(f'k must be at least 1, got {k}')
        self.k = k
        self.parts_of_action = None if actions is None else read_actions(
            actions)
        self.subsets = {
            name: set(read_ids(ids) if isinstance(ids, str) else ids)
            for name, ids in (subsets or {}).items()
        }

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the row of each segment that counts."""
        for sample in data_samples:
            labels = sample['segment_labels']
            if labels is None:
                raise ValueError(
                    f'{sample["video_name"]}: the samples must be of '
                    "segments, with the dataset's windows='segments'")
            scores = {}
            for part in PARTS:
                if f'pred_{part}' not in sample:
                    continue
                rows = sample[f'pred_{part}'].float().cpu().numpy()
                # Without the background, which no segment has.
                scores[part] = np.zeros_like(rows[0, 1:])
                if len(sample['score_rows']):
                    scores[part] = rows[sample['score_rows'][0], 1:]
            self.results.append(
                dict(
                    mode=sample['evaluation_mode'],
                    segment=sample['segment_id'],
                    labels=labels,
                    seen=len(sample['score_rows']) > 0,
                    scores=scores))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """All results, by name."""
        modes = sorted({result['mode'] for result in results})
        if len(modes) != 1:
            raise ValueError('all segments must be of one protocol, got '
                             f'{", ".join(modes)}')
        scores = {
            part: np.stack([r['scores'][part] for r in results])
            for part in results[0]['scores']
        }
        seen = np.array([r['seen'] for r in results])
        if self.parts_of_action is not None:
            for i, part in enumerate(PARTS[1:]):
                if part not in scores:
                    of_action = self.parts_of_action[:, i]
                    scores[part] = marginal_scores(
                        scores['action'], of_action, of_action.max() + 1)
                    scores[part][~seen] = 0
        ids = np.array([r['segment'] for r in results])
        found = {}
        for part, each in scores.items():
            labels = np.array([r['labels'][part] for r in results])
            name = f'{part}_top{self.k}_recall_{modes[0]}'
            found[name] = mean_top_k_recall(each, labels, self.k)
            for subset, wanted in self.subsets.items():
                stem, _, only = subset.rpartition('_')
                if only in PARTS:
                    subset = stem
                if only == part or only not in PARTS:
                    inside = np.isin(ids, list(wanted))
                    found[f'{name}_{subset}'] = mean_top_k_recall(
                        each[inside], labels[inside], self.k)
        return found


def read_ids(path: str) -> list[int]:
    """Segment ids of a file of one a line, with or without a heading.

    Raises:
        ValueError: If there is no such file, or a line has no number.
    """
    if not Path(path).is_file():
        raise ValueError(f'subsets: there is no file {path}')
    lines = Path(path).read_text().split()
    if lines and not lines[0].isdigit():
        lines = lines[1:]
    for line in lines:
        if not line.isdigit():
            raise ValueError(f'{path}: {line!r} is not the id of a segment')
    return [int(line) for line in lines]


def read_actions(actions: str | Sequence[tuple[int, int]]) -> np.ndarray:
    """The verb and the noun of each action, ``(K, 2)``.

    Raises:
        ValueError: If the file is missing or lacks a column or an action.
    """
    if not isinstance(actions, str):
        return np.asarray(actions)
    if not Path(actions).is_file():
        raise ValueError(f'actions: there is no file {actions}')
    with open(actions, newline='', encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    try:
        table = {
            int(row['id']): (int(row['verb']), int(row['noun']))
            for row in rows
        }
    except (KeyError, ValueError) as error:
        raise ValueError(
            f'{actions} must have numbers in columns id, verb and noun, got '
            f'{list(rows[0]) if rows else "nothing"}') from error
    if sorted(table) != list(range(len(table))):
        raise ValueError(f'{actions} must list the actions 0 to '
                         f'{len(table) - 1}, each once')
    return np.array([table[i] for i in range(len(table))])
