# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Helpers for config files."""
import copy
from collections.abc import Sequence
from typing import Any


def change(steps: Sequence[dict[str, Any]],
           **changes: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Change steps of an inherited pipeline by the names of their types.

    A config inherits a list only as a whole. In a config file::

        _base_ = 'linear_ff_ssv2.py'

        from mmvidattn.utils.config import change

        train_pipeline = change(
            _base_.train_pipeline,
            RandomCrop=dict(size=336),  # this option, the others stay
            AutoAugment=None,           # without this step
            RandomErasing=dict(         # another one in its place
                _delete_=True, type='RandAugment', num_ops=2))
        train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

    The import comes below ``_base_``: mmengine takes a file that begins with
    an import for one of its "pure Python" configs. Schedulers change likewise.

    Args:
        steps: Dicts with a ``type``; they are left as they are.
        changes: By type, options that replace those of the step.

    Raises:
        ValueError: If not exactly one of the steps is of a type.
    """
    types = [step['type'] for step in steps]
    for name in changes:
        if types.count(name) != 1:
            raise ValueError(f'cannot change {name}: one of {types} must be '
                             f'of this type, got {types.count(name)}')
    changed = []
    for step in copy.deepcopy(list(steps)):
        options = changes.get(step['type'], {})
        if options is not None:
            options = dict(options)
            kept = {} if options.pop('_delete_', False) else step
            changed.append({**kept, **options})
    return changed
