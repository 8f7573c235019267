# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of values and of combinations of arguments."""
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch


def check_finite(**values: Any) -> None:
    """Raise a ``ValueError`` if a tensor or array has an inf or NaN value."""
    for name, value in values.items():
        value = torch.as_tensor(value)
        number = value.numel() - int(value.isfinite().sum())
        if number:
            kind = 'nan' if value.isnan().any() else 'inf'
            raise ValueError(f'{name} must be finite, got {kind}: {number} of '
                             f'{value.numel()} values are not finite')


def check_divides(**values: int | Sequence[int]) -> None:
    """Raise a ``ValueError`` unless the first value divides all other values.

    Example: ``check_divides(num_heads=8, embed_dims=512)``.
    """
    (name, divisor), *multiples = values.items()
    for multiple, value in multiples:
        for number in np.ravel(value):
            if number % divisor:
                raise ValueError(f'{multiple}={value} is not divisible by '
                                 f'{name}={divisor}')


def to_pair(value: int | Sequence[int]) -> tuple[int, int]:
    """Return (height, width); a single number stands for both."""
    return (value, value) if isinstance(value, Integral) else tuple(value)
