# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks of the loops, and functions that several share."""
from typing import Any, TypeVar

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

Kind = TypeVar('Kind', bound=Hook)


def find_hook(runner: Runner, kind: type[Kind]) -> Kind | None:
    """Return the runner's hook of a type, or None."""
    return next((h for h in runner.hooks if isinstance(h, kind)), None)


def metainfos(batch: Any) -> list[dict]:
    """Return the meta information of each sample that has any."""
    samples = batch.get('data_samples') if isinstance(batch, dict) else None
    return [sample.metainfo for sample in samples or ()
            if hasattr(sample, 'metainfo')]


def is_finite(value: Any) -> bool:
    """Return True if all tensors in nested dicts and lists are finite."""
    if torch.is_tensor(value):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    return True
