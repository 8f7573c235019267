# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""EPIC-Kitchens-100: accuracy of recognition, and submission files."""
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log
from torch import Tensor

from ..utils.arguments import Count, check_arguments, check_finite
from ..utils.files import replacing
from ..utils.printable import count
from .segment_scores import (
    PARTS,
    SegmentSubset,
    read_actions,
    read_segment_scores,
    stack_scores,
)

VERSION = '0.2'
LEVELS = 'pt', 'tl', 'td'


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
        self.subsets = [SegmentSubset(*each)
                        for each in (subsets or {}).items()]

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
        groups = [('', None, np.ones(len(results), bool))] + [
            (f'_{subset.name}', subset.part,
             subset.mask((r['id'], r['labels']) for r in results))
            for subset in self.subsets]
        accuracies = {}
        for suffix, only, inside in groups:
            for key, name in (('top1', ''), ('top5', '_top5')):
                correct = torch.tensor([r[key] for r in results]).double()
                means = correct[torch.from_numpy(inside)].mean(dim=0)
                for part, share in zip(PARTS, means.tolist()):
                    if only in (None, part):
                        accuracies[f'{part}{name}{suffix}'] = share
        return accuracies


@METRICS.register_module()
@check_arguments
class EpicSubmission(BaseMetric):
    """Metric that writes a submission file instead of computing scores.

    It accepts samples of online models (anticipation), or of recognizers whose
    scores list nouns, then verbs (recognition); samples of recognizers need a
    ``segment_id``. For each segment, it writes the scores of all verbs and
    nouns, and of the best actions. Segments need no labels.

    Args:
        out_file: Path of a ``.json`` file, or of a ``.zip`` file that will
            contain ``test.json``.
        actions: Verb and noun of each action, for anticipation; see
            :class:`MeanTopKRecall`.
        num_actions: Number of actions per segment. Defaults to 100.
        supervision: Supervision levels of the challenge, 0 to 5, for
            pretraining (``pt``), training labels (``tl``) and training data
            (``td``). The default means pretraining on public images and
            videos, and training on all labels of the training set.
        num_nouns: Number of noun classes, for recognition. Defaults to 300.
        score: Type of a recognizer's scores; see :class:`VerbNounAccuracy`.
        **kwargs: Arguments of mmengine's ``BaseMetric``.

    Raises:
        ValueError: If an option is invalid, or a score is not finite.
    """

    default_prefix = 'submission'

    def __init__(self, out_file: str,
                 actions: str | Sequence[tuple[int, int]] | None = None,
                 num_actions: Count = 100,
                 supervision: Mapping[str, int] = dict(pt=2, tl=3, td=3),
                 num_nouns: Count = 300,
                 score: Literal['logit', 'prob'] = 'logit',
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if Path(out_file).suffix not in ('.json', '.zip'):
            raise ValueError('out_file must end with .json or .zip, got '
                             f'{out_file}')
        if set(supervision) != set(LEVELS) or not all(
                0 <= level <= 5 for level in supervision.values()):
            raise ValueError('supervision must be dict(pt=..., tl=..., '
                             f'td=...), 0 to 5 each, got {dict(supervision)}')
        self.out_file = Path(out_file)
        self.parts_of_action = None if actions is None else read_actions(
            actions)
        self.num_actions = num_actions
        self.supervision = dict(supervision)
        self.num_nouns = num_nouns
        self.score = score

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the entries of each sample's segments."""
        for sample in data_samples:
            if 'pred_score' in sample:
                challenge = 'action_recognition'
                segments = self._recognized(sample)
            else:
                challenge = 'action_anticipation'
                segments = self._anticipated(sample)
            self.results.append(dict(challenge=challenge, segments=segments))

    def _recognized(self, sample: dict) -> dict[str, dict]:
        if sample.get('segment_id') is None:
            raise ValueError('a submission needs samples with a segment_id')
        scores = log_probabilities(sample['pred_score'].cpu(), self.num_nouns,
                                   self.score)
        # JSON has no -inf, the logarithm of a probability of 0.
        scores = {part: x.clamp(min=-1e4) for part, x in scores.items()}
        pairs, best = top_actions(scores['verb'], scores['noun'],
                                  self.num_actions)
        return {str(sample['segment_id']): _entry(
            scores['verb'], scores['noun'], pairs, best)}

    def _anticipated(self, sample: dict) -> dict[str, dict]:
        if self.parts_of_action is None:
            raise ValueError('actions must list the verb and noun of each '
                             'action, got None')
        segments = read_segment_scores(sample)
        if not segments:
            return {}
        scores = {
            part: torch.from_numpy(np.asarray(x)) for part, x in
            stack_scores(segments, self.parts_of_action).items()}
        if scores['action'].shape[1] != len(self.parts_of_action):
            raise ValueError(
                f'actions must list the {scores["action"].shape[1]} actions '
                f'of the model, got {len(self.parts_of_action)}')
        entries = {}
        for i, segment in enumerate(segments):
            best = scores['action'][i].topk(
                min(self.num_actions, len(self.parts_of_action)))
            pairs = self.parts_of_action[best.indices.numpy()].tolist()
            entries[segment.id] = _entry(scores['verb'][i], scores['noun'][i],
                                       pairs, best.values)
        return entries

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Write the submission file."""
        segments = {}
        for result in results:
            segments.update(result['segments'])
        text = json.dumps(dict(
            version=VERSION, challenge=results[0]['challenge'],
            **{f'sls_{key}': self.supervision[key] for key in LEVELS},
            results=segments))
        with replacing(self.out_file) as part:
            if self.out_file.suffix == '.zip':
                with zipfile.ZipFile(part, 'w', zipfile.ZIP_DEFLATED) as file:
                    file.writestr('test.json', text)
            else:
                part.write_text(text, encoding='utf-8')
        print_log(f'{self.out_file}: {count(segments, "segment")} for '
                  f'{results[0]["challenge"]}', 'current')
        return {}


def _entry(verb: Tensor, noun: Tensor, pairs: Sequence[tuple[int, int]],
           best: Tensor) -> dict[str, dict[str, float]]:
    check_finite(verb=verb, noun=noun, action=best)
    return dict(
        verb=_numbers(map(str, range(len(verb))), verb),
        noun=_numbers(map(str, range(len(noun))), noun),
        action=_numbers((f'{verb},{noun}' for verb, noun in pairs), best))


def _numbers(keys: Iterable[str], scores: Tensor) -> dict[str, float]:
    # float32 has 7 significant digits.
    return {key: float(f'{x:.7g}') for key, x in zip(keys, scores.tolist())}
