# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook for start weights with another number of classes."""
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ...utils.unwrap import unwrap


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
