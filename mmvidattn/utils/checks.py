# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of arguments: a wrong value is a ``ValueError`` that names it."""
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import torch

from .arguments import Count, NotNegative, Positive, check_type


def check_choice(name: str, value: Any, allowed: Iterable) -> None:
    """Raise a ``ValueError`` if the value is none of those allowed."""
    allowed = tuple(allowed)
    if not any(value == choice for choice in allowed):
        raise ValueError(f'{name} must be one of {allowed}, got {value!r}')


def check_count(**values: int) -> None:
    """Raise a ``ValueError`` unless each value is an integer from 1."""
    _check_all(values, Count)


def check_positive(**values: float) -> None:
    """Raise a ``ValueError`` unless each value is finite and above 0."""
    _check_all(values, Positive)


def check_not_negative(**values: float) -> None:
    """Raise a ``ValueError`` unless each value is finite and at least 0."""
    _check_all(values, NotNegative)


def check_finite(**values: Any) -> None:
    """Raise a ``ValueError`` unless all values of each array are finite.

    Args:
        **values: Tensors or arrays of any shape, by name.
    """
    for name, value in values.items():
        value = torch.as_tensor(value)
        number = value.numel() - int(value.isfinite().sum())
        if number:
            kind = 'nan' if value.isnan().any() else 'inf'
            raise ValueError(f'{name} must be finite, got {kind}: {number} of '
                             f'{value.numel()} values are not finite')


def check_divides(**values: int | Sequence[int]) -> None:
    """Raise a ``ValueError`` unless the first value divides the others.

    Args:
        **values: A positive integer, then integers or sequences of them:
            ``check_divides(num_heads=8, embed_dims=512)``.
    """
    (name, divisor), *others = values.items()
    check_count(**{name: divisor})
    for other, value in others:
        for number in (value, ) if isinstance(value, Integral) else value:
            if number % divisor:
                raise ValueError(f'{other}={value} is not divisible by '
                                 f'{name}={divisor}')


def to_pair(value: int | Sequence[int]) -> tuple[int, int]:
    """Height and width, of both or of one number for both."""
    return (value, value) if isinstance(value, Integral) else tuple(value)


def _check_all(values: dict[str, Any], wanted: Any) -> None:
    for name, value in values.items():
        check_type(name, value, wanted)
