# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Any

import torch
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric


@METRICS.register_module()
class VerbNounAccuracy(BaseMetric):
    """Top-1 accuracy of nouns, verbs and actions, as of EPIC-Kitchens-100.

    An action is right where its noun and its verb both are.

    Args:
        num_nouns: Noun classes, the first scores; the others are the verbs'.
        **kwargs: Of mmengine's ``BaseMetric``.
    """
    default_prefix = 'acc'

    def __init__(self, num_nouns: int = 300, **kwargs) -> None:
        super().__init__(**kwargs)
        self.num_nouns = num_nouns

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Compare scores [num_classes] with labels of the same shape."""
        for sample in data_samples:
            score, label = sample['pred_score'], sample['gt_label']
            if score.shape != label.shape:
                raise ValueError(
                    f'a label must be {tuple(score.shape)}, a one for the '
                    'noun and a one for the verb, got '
                    f'{tuple(label.shape)}')
            self.results.append(
                dict(
                    noun=self._is_right(slice(self.num_nouns), score, label),
                    verb=self._is_right(
                        slice(self.num_nouns, None), score, label)))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Shares of the samples that are right."""
        right = torch.tensor([[r['noun'], r['verb']] for r in results])
        noun, verb = right.double().mean(dim=0).tolist()
        action = right.all(dim=1).double().mean().item()
        return dict(noun=noun, verb=verb, action=action)

    @staticmethod
    def _is_right(part: slice, score: torch.Tensor,
                  label: torch.Tensor) -> bool:
        return bool(score[part].argmax() == label[part].argmax())
