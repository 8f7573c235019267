# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""EPIC-Kitchens-100's metric of action recognition."""
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric
from torch import Tensor

from ..utils.arguments import Count, check_arguments
from ..utils.checks import check_finite
from .segment_scores import PARTS, build_subsets


def top_actions(verb: Tensor, noun: Tensor,
                k: int) -> tuple[list[tuple[int, int]], Tensor]:
    """Return the most probable actions if verb and noun are independent.

    Args:
        verb: Log-probabilities of the verbs, [V].
        noun: Log-probabilities of the nouns, [N].
        k: Maximum number of actions.

    Returns:
        Verb and noun of each action, best first, and the log-probabilities
        of the actions, [k].
    """
    # The k best actions only use the k best verbs and the k best nouns.
    verbs, nouns = (x.topk(min(k, len(x))) for x in (verb, noun))
    scores = (verbs.values[:, None] + nouns.values).flatten()
    best = scores.topk(min(k, len(scores)))
    pairs = [(int(verbs.indices[i // len(nouns.values)]),
              int(nouns.indices[i % len(nouns.values)]))
             for i in best.indices.tolist()]
    return pairs, best.values


def log_probabilities(pred_score: Tensor, num_nouns: int,
                      score: str) -> dict[str, Tensor]:
    """Split ``pred_score`` into log-probabilities of nouns and verbs.

    Args:
        pred_score: Scores of the nouns, then the V verbs, [num_nouns + V].
        num_nouns: Number of noun classes.
        score: Type of the scores, 'logit' or 'prob'.

    Raises:
        ValueError: If a score is not finite, or a probability is negative.
    """
    check_finite(pred_score=pred_score)
    if score == 'prob' and (pred_score < 0).any():
        raise ValueError("pred_score must be >= 0 with score='prob', got "
                         f'{pred_score.min():g}')
    parts = dict(noun=pred_score[:num_nouns].float(),
                 verb=pred_score[num_nouns:].float())
    return {name: x.log() if score == 'prob' else x.log_softmax(dim=-1)
            for name, x in parts.items()}


@METRICS.register_module()
@check_arguments
class VerbNounAccuracy(BaseMetric):
    """Top-1 and top-5 accuracy of EPIC-Kitchens-100 action recognition.

    The best action is the pair of the best verb and the best noun. The five
    best actions are the pairs with the highest products of probabilities, as
    in the challenge. The top-1 results are ``action``, ``verb`` and ``noun``,
    in this order; the top-5 results are ``action_top5`` and so on, and the
    results of a subset are ``action_unseen``, ``action_top5_unseen`` and so
    on.

    Args:
        num_nouns: Number of noun classes. The first scores are for nouns, the
            rest for verbs. Defaults to 300.
        score: Type of the scores, 'logit' or 'prob'. Use 'prob' for a head
            with ``average_clips='prob'``. Defaults to 'logit'.
        subsets: File or list of the segments of each subset, by name; see
            :class:`~mmvidattn.evaluation.segment_scores.SegmentSubset`. Lists
            of ids need samples with a ``segment_id``.
        **kwargs: Arguments of mmengine's ``BaseMetric``.
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
        """Compare scores [num_classes] with labels [num_classes]."""
        for sample in data_samples:
            score, label = sample['pred_score'], sample['gt_label']
            if score.shape != label.shape:
                raise ValueError(
                    f'gt_label must be {tuple(score.shape)}, with a 1 for the '
                    f'noun and a 1 for the verb, got {tuple(label.shape)}')
            if not label.any():
                # The labels of a challenge's test set are not published.
                continue
            scores = log_probabilities(score, self.num_nouns, self.score)
            labels = dict(
                noun=int(label[:self.num_nouns].argmax()),
                verb=int(label[self.num_nouns:].argmax()))
            actions, _ = top_actions(scores['verb'], scores['noun'], 5)
            # The five best classes. Among equal scores, the first class ranks
            # first.
            ranks = {
                part: x.sort(descending=True, stable=True)[1][:5].tolist()
                for part, x in scores.items()}
            # The best action must use the same verb and noun if scores are
            # equal.
            actions[0] = ranks['verb'][0], ranks['noun'][0]
            ranks['action'] = actions
            expected = dict(labels, action=(labels['verb'], labels['noun']))
            self.results.append(dict(
                id=sample.get('segment_id'), labels=labels,
                top1=[expected[p] == ranks[p][0] for p in PARTS],
                top5=[expected[p] in ranks[p] for p in PARTS]))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Return the accuracies; empty if no sample has a label."""
        if not results:
            return {}
        everything = torch.ones(len(results), dtype=torch.bool)
        accuracies = self._shares(results, everything, '')
        for subset in self.subsets:
            inside = torch.from_numpy(
                subset.mask((r['id'], r['labels']) for r in results))
            shares = self._shares(results, inside, f'_{subset.name}')
            accuracies.update({
                name: share for name, share in shares.items()
                if subset.part in (None, name.split('_')[0])})
        return accuracies

    @staticmethod
    def _shares(results: list[dict], inside: Tensor,
                suffix: str) -> dict[str, float]:
        accuracies = {}
        for key, name in (('top1', ''), ('top5', '_top5')):
            correct = torch.tensor([r[key] for r in results]).double()
            means = correct[inside].mean(dim=0).tolist()
            for part, share in zip(PARTS, means):
                accuracies[f'{part}{name}{suffix}'] = share
        return accuracies
