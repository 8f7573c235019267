# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Search for the first module that produces infinite or NaN values."""
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def watch_outputs(model: nn.Module) -> Iterator[list[str]]:
    """Watch the inputs and outputs of all modules of a model.

    Yields:
        A list, which is empty until a value is not finite. It then describes
        the first faulty module: a module whose input is finite and whose
        output is not, or a module with an input that is not finite and that no
        other module returned.
    """
    fault: list[str] = []

    def watch(name: str):

        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if not fault and is_finite(args) and not is_finite(output):
                fault.append(f'{name or "the model"} '
                             f'({type(module).__name__})')
            elif not fault and name and not is_finite(args):
                fault.append(f'the input of {name} '
                             f'({type(module).__name__})')

        return hook

    handles = [module.register_forward_hook(watch(name))
               for name, module in model.named_modules()
               if name != 'data_preprocessor']
    try:
        yield fault
    finally:
        for handle in handles:
            handle.remove()


def name_bad_gradients(model: nn.Module) -> str:
    """Return the names of the first parameters with non-finite gradients."""
    bad = [name for name, p in model.named_parameters()
           if p.grad is not None and not is_finite(p.grad)]
    return ', '.join(bad[:3]) + (', ...' if len(bad) > 3 else '')


def is_finite(value: Any) -> bool:
    """Return True if all tensors in nested dicts and lists are finite."""
    if torch.is_tensor(value):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    return True
