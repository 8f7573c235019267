# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Finds the module that makes values infinite, or not a number."""
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

MAX_FILES = 32
# What samples of videos, of folders of frames and of features have.
NAMES = 'filename', 'frame_dir', 'video_name'


@contextmanager
def watch_outputs(model: nn.Module) -> Iterator[list[str]]:
    """Look at all that the modules of a model take and give, for a while.

    Returns:
        A list; the first module whose output is not finite although its input
        is, or that gets such an input from no module, will be in it.
    """
    found: list[str] = []

    def look(name: str):

        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if not found and is_finite(args) and not is_finite(output):
                found.append(f'{name or "the model"} '
                             f'({type(module).__name__})')
            elif not found and not name == '' and not is_finite(args):
                found.append(f'the input of {name} '
                             f'({type(module).__name__})')

        return hook

    handles = [module.register_forward_hook(look(name))
               for name, module in model.named_modules()
               if name != 'data_preprocessor']
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def name_bad_gradients(model: nn.Module) -> str:
    """Name the first parameters whose gradients are not finite."""
    bad = [name for name, p in model.named_parameters()
           if p.grad is not None and not p.grad.isfinite().all()]
    return ', '.join(bad[:3]) + (', ...' if len(bad) > 3 else '')


def name_files(batch: Any) -> list[str]:
    """Name the files of a batch, as far as its samples know them."""
    samples = batch.get('data_samples') if isinstance(batch, dict) else None
    names = [next(filter(None, map(sample.get, NAMES)), None)
             for sample in samples or () if hasattr(sample, 'metainfo')]
    names = [str(name) for name in names if name]
    return names[:MAX_FILES] + ['...'] * (len(names) > MAX_FILES)


def is_finite(value: Any) -> bool:
    """Return True if all tensors in nested dicts and lists are finite."""
    if torch.is_tensor(value):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    return True
