# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Submission files for the EPIC-KITCHENS-100 challenges."""
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

from ..utils.arguments import Count, check_arguments
from ..utils.checks import check_finite
from ..utils.files import replacing
from .segment_scores import read_actions, read_segment_scores, stack_scores
from .verb_noun_accuracy import log_probabilities, top_actions

VERSION = '0.2'
LEVELS = 'pt', 'tl', 'td'


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
        print_log(f'{self.out_file}: {len(segments)} segments for '
                  f'{results[0]["challenge"]}', 'current')
        return {}


def _entry(verb: torch.Tensor, noun: torch.Tensor,
           pairs: Sequence[tuple[int, int]],
           best: torch.Tensor) -> dict[str, dict[str, float]]:
    check_finite(verb=verb, noun=noun, action=best)
    return dict(
        verb=_numbers(map(str, range(len(verb))), verb),
        noun=_numbers(map(str, range(len(noun))), noun),
        action=_numbers((f'{verb},{noun}' for verb, noun in pairs), best))


def _numbers(keys: Iterable[str], scores: torch.Tensor) -> dict[str, float]:
    # float32 has 7 significant digits.
    return {key: float(f'{x:.7g}') for key, x in zip(keys, scores.tolist())}
