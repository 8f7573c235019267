# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The file that the challenges of EPIC-KITCHENS-100 take."""
import json
import zipfile
from collections.abc import Mapping, Sequence
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
    """Writes the scores of all segments; it has no results of its own.

    Takes the samples of online models (anticipation), or those of
    recognizers with scores of nouns, then verbs (recognition), whose samples
    have a ``segment_id``. Of each segment it writes the scores of all verbs
    and nouns, and of the best actions. Segments need no labels.

    Args:
        out_file: A ``.json``, or a ``.zip`` with a ``test.json`` in it.
        actions: Of each action its verb and noun, see
            :class:`MeanTopKRecall`; for anticipation.
        num_actions: How many actions of each segment.
        supervision: Levels that the challenge asks for, 0 to 5 each, of
            pretraining (``pt``), training labels (``tl``) and training data
            (``td``). The default is a model that was pretrained on public
            images and videos, and trained on all labels of the training set.
        num_nouns: Noun classes, for recognition.
        score: What recognizers' scores are, see :class:`VerbNounAccuracy`.
        collect_device: Where ranks gather the scores.
        prefix: Not used.

    Raises:
        ValueError: If an option, or a score, is unfit.
    """

    default_prefix = 'submission'

    def __init__(self,
                 out_file: str,
                 actions: str | Sequence[tuple[int, int]] | None = None,
                 num_actions: Count = 100,
                 supervision: Mapping[str, int] = dict(pt=2, tl=3, td=3),
                 num_nouns: Count = 300,
                 score: Literal['logit', 'prob'] = 'logit',
                 collect_device: str = 'cpu',
                 prefix: str | None = None) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        if Path(out_file).suffix not in ('.json', '.zip'):
            raise ValueError(f'out_file must end with .json or .zip, got '
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
        """Write down each sample's segments."""
        for sample in data_samples:
            recognized = 'pred_score' in sample
            self.results.append(
                dict(
                    challenge='action_recognition'
                    if recognized else 'action_anticipation',
                    segments=self._recognized(sample)
                    if recognized else self._anticipated(sample)))

    def _recognized(self, sample: dict) -> dict[str, dict]:
        if sample.get('segment_id') is None:
            raise ValueError('a submission takes samples with a segment_id')
        scores = log_probabilities(sample['pred_score'].cpu(), self.num_nouns,
                                   self.score)
        # A probability of 0 has no logarithm that JSON knows.
        scores = {part: x.clamp(min=-1e4) for part, x in scores.items()}
        pairs, best = top_actions(scores['verb'], scores['noun'],
                                  self.num_actions)
        return {
            str(sample['segment_id']):
            _entry(scores['verb'], scores['noun'], pairs, best)
        }

    def _anticipated(self, sample: dict) -> dict[str, dict]:
        if self.parts_of_action is None:
            raise ValueError('actions must be the list of actions with their '
                             'verbs and nouns')
        segments = read_segment_scores(sample)
        if not segments:
            return {}
        scores = {
            part: torch.from_numpy(np.asarray(x))
            for part, x in stack_scores(segments,
                                        self.parts_of_action).items()
        }
        if scores['action'].shape[1] != len(self.parts_of_action):
            raise ValueError(
                f'actions must be the {scores["action"].shape[1]} of the '
                f'model, got {len(self.parts_of_action)}')
        found = {}
        for i, segment in enumerate(segments):
            best = scores['action'][i].topk(
                min(self.num_actions, len(self.parts_of_action)))
            pairs = self.parts_of_action[best.indices.numpy()].tolist()
            found[segment.id] = _entry(scores['verb'][i], scores['noun'][i],
                                       pairs, best.values)
        return found

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Write the file."""
        segments = {}
        for result in results:
            segments.update(result['segments'])
        text = json.dumps(
            dict(
                version=VERSION,
                challenge=results[0]['challenge'],
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
    keys = [f'{verb},{noun}' for verb, noun in pairs]
    return dict(
        verb=_numbers(map(str, range(len(verb))), verb),
        noun=_numbers(map(str, range(len(noun))), noun),
        action=_numbers(keys, best))


def _numbers(keys, scores: torch.Tensor) -> dict[str, float]:
    # float32 has no more digits.
    return {key: float(f'{x:.7g}') for key, x in zip(keys, scores.tolist())}
