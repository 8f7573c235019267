# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Start weights of another number of classes."""
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ...utils.unwrap import unwrap


class NewClassifierHook(Hook):
    """Keep the new weights of a head whose start weights have another shape.

    mmengine prints a size mismatch otherwise, which looks like an error.

    Attributes:
        note: Sentence about the classes, or an empty string.
    """
    note = ''

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        weights = checkpoint.get('state_dict', checkpoint)
        for name, value in unwrap(runner.model).state_dict().items():
            found = weights.get(name)
            if (name.startswith('cls_head.') and found is not None
                    and found.shape != value.shape):
                weights[name] = value
                self.note = (
                    f'the classifier is new: the start weights have '
                    f'{len(found)} classes, this model has {len(value)}')
