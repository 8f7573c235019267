# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks for fine-tuning on small data sets."""
from typing import Any

from mmaction.registry import HOOKS
from mmengine.hooks import EarlyStoppingHook, Hook
from mmengine.runner import Runner

from ...utils.arguments import Fraction, check_arguments
from ...utils.modules import unwrap


class NewClassifierHook(Hook):
    """Keep initial head weights whose shape differs in the start weights.

    Otherwise, mmengine prints a size mismatch, which looks like an error.

    Attributes:
        note: Sentence about the numbers of classes; empty if they are equal.
    """
    note = ''

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        weights = checkpoint.get('state_dict', checkpoint)
        for name, value in unwrap(runner.model).state_dict().items():
            given = weights.get(name)
            if (name.startswith('cls_head.') and given is not None
                    and given.shape != value.shape):
                weights[name] = value
                self.note = (
                    'the classifier starts from random weights: the start '
                    f'weights have {len(given)} classes, this model has '
                    f'{len(value)}')


@HOOKS.register_module()
@check_arguments
class PatientStoppingHook(EarlyStoppingHook):
    """Stop training early, but not before the training set is learned.

    A model that starts from random weights can stay at chance for many epochs
    before it learns. mmengine's ``EarlyStoppingHook`` would stop such a run.
    This hook ignores a validation unless the mean training accuracy of its
    epoch is at least ``learned``.

    Args:
        learned: Mean training accuracy of an epoch from which validations
            count. Defaults to 0.95.
        **kwargs: Arguments of mmengine's ``EarlyStoppingHook``.
    """

    def __init__(self, learned: Fraction = 0.95, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.learned = learned

    def after_val_epoch(self, runner: Runner,
                        metrics: dict | None = None) -> None:
        accuracies = runner.message_hub.get_scalar('train/top1_acc')
        if accuracies.mean(len(runner.train_dataloader)) >= self.learned:
            super().after_val_epoch(runner, metrics)
