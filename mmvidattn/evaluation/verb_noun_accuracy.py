# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric
from torch import Tensor

from ..utils.arguments import Count, check_arguments
from ..utils.checks import check_finite
from .segment_scores import PARTS
from .segment_subset import build_subsets


def top_actions(verb: Tensor, noun: Tensor,
                k: int) -> tuple[list[tuple[int, int]], Tensor]:
    """The most probable actions, if verb and noun were independent.

    Args:
        verb: Log-probabilities of the verbs, [V].
        noun: Of the nouns, [N].
        k: How many; fewer if there are no more.

    Returns:
        Verb and noun of each, best first, and their log-probabilities, [k].
    """
    # No action of the k best has a part that is not of the k best.
    verbs, nouns = (x.topk(min(k, len(x))) for x in (verb, noun))
    scores = (verbs.values[:, None] + nouns.values).flatten()
    best = scores.topk(min(k, len(scores)))
    pairs = [(int(verbs.indices[i // len(nouns.values)]),
              int(nouns.indices[i % len(nouns.values)]))
             for i in best.indices.tolist()]
    return pairs, best.values


def log_probabilities(pred_score: Tensor, num_nouns: int,
                      score: str) -> dict[str, Tensor]:
    """``pred_score`` of nouns, then verbs, to log-probabilities of both.

    Args:
        pred_score: [num_nouns + V].
        num_nouns: Noun classes.
        score: What they are, 'logit' or 'prob'.

    Raises:
        ValueError: If a score is not finite, or a probability is negative.
    """
    check_finite(pred_score=pred_score)
    if score == 'prob' and (pred_score < 0).any():
        raise ValueError("pred_score must not be negative with score='prob', "
                         f'got {pred_score.min():g}')
    parts = dict(
        noun=pred_score[:num_nouns].float(),
        verb=pred_score[num_nouns:].float())
    if score == 'prob':
        return {name: x.log() for name, x in parts.items()}
    return {name: x.log_softmax(dim=-1) for name, x in parts.items()}


@METRICS.register_module()
@check_arguments
class VerbNounAccuracy(BaseMetric):
    """Accuracy of actions, verbs and nouns, as of EPIC-Kitchens-100.

    The best action is of the best verb and the best noun; the five best are
    those of the highest products of probabilities, as in the challenge. Top-1
    is ``action``, ``verb`` and ``noun``, the action first; top-5
    ``action_top5`` and so on; that of a subset ``action_unseen``,
    ``action_top5_unseen``.

    Args:
        num_nouns: Noun classes, the first scores; the others are the verbs'.
        score: What the scores are: 'logit', or 'prob' for a head with
            ``average_clips='prob'``.
        subsets: Lists of the segments of each subset, or files of them; see
            :class:`~mmvidattn.evaluation.segment_subset.SegmentSubset`. Lists
            of ids are for samples with a ``segment_id``.
        **kwargs: Of mmengine's ``BaseMetric``.
    """
    default_prefix = 'acc'

    def __init__(self,
                 num_nouns: Count = 300,
                 score: Literal['logit', 'prob'] = 'logit',
                 subsets: Mapping[str, Any] | None = None,
                 **kwargs) -> None:
        super().__init__(**kwargs)
        self.num_nouns = num_nouns
        self.score = score
        self.subsets = build_subsets(subsets)

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Compare scores [num_classes] with labels of the same shape."""
        for sample in data_samples:
            score, label = sample['pred_score'], sample['gt_label']
            if score.shape != label.shape:
                raise ValueError(
                    f'a label must be {tuple(score.shape)}, a one for the '
                    'noun and a one for the verb, got '
                    f'{tuple(label.shape)}')
            if not label.any():
                # Of a challenge, whose labels are not published.
                continue
            scores = log_probabilities(score, self.num_nouns, self.score)
            labels = dict(
                noun=int(label[:self.num_nouns].argmax()),
                verb=int(label[self.num_nouns:].argmax()))
            actions, _ = top_actions(scores['verb'], scores['noun'], 5)
            # Of the best, in this order; of equal scores the first class.
            ranks = {
                part: x.sort(descending=True, stable=True)[1][:5].tolist()
                for part, x in scores.items()
            }
            # By the parts, so that equal scores agree with theirs.
            actions[0] = ranks['verb'][0], ranks['noun'][0]
            ranks['action'] = actions
            wanted = dict(
                labels, action=(labels['verb'], labels['noun']))
            self.results.append(
                dict(
                    id=sample.get('segment_id'),
                    labels=labels,
                    top1=[wanted[p] == ranks[p][0] for p in PARTS],
                    top5=[wanted[p] in ranks[p] for p in PARTS]))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Shares of the samples that are right; none without labels."""
        if not results:
            return {}
        everything = torch.ones(len(results), dtype=torch.bool)
        found = self._shares(results, everything, '')
        for subset in self.subsets:
            inside = torch.from_numpy(
                subset.mask((r['id'], r['labels']) for r in results))
            shares = self._shares(results, inside, f'_{subset.name}')
            found.update({
                name: share for name, share in shares.items()
                if subset.part in (None, name.split('_')[0])
            })
        return found

    @staticmethod
    def _shares(results: list[dict], inside: Tensor,
                end: str) -> dict[str, float]:
        found = {}
        for key, name in (('top1', ''), ('top5', '_top5')):
            right = torch.tensor([r[key] for r in results]).double()
            for part, share in zip(PARTS, right[inside].mean(dim=0).tolist()):
                found[f'{part}{name}{end}'] = share
        return found
