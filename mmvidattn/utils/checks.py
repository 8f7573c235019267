# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of arguments: a wrong value is a ``ValueError`` that names it."""
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any


def check_choice(name: str, value: Any, allowed: Iterable) -> None:
    """Raise a ``ValueError`` if the value is none of those allowed."""
    allowed = tuple(allowed)
    if not any(value == choice for choice in allowed):
        raise ValueError(f'{name} must be one of {allowed}, got {value!r}')


def check_count(**values: int) -> None:
    """Raise a ``ValueError`` unless each value is an integer from 1."""
    _check(values, lambda x: _is_integer(x) and x >= 1,
           'a positive integer')


def check_natural(**values: int) -> None:
    """Raise a ``ValueError`` unless each value is an integer from 0."""
    _check(values, lambda x: _is_integer(x) and x >= 0,
           'a non-negative integer')


def check_positive(**values: float) -> None:
    """Raise a ``ValueError`` unless each value is finite and above 0."""
    _check(values, lambda x: _is_finite(x) and x > 0, 'a positive number')


def check_not_negative(**values: float) -> None:
    """Raise a ``ValueError`` unless each value is finite and at least 0."""
    _check(values, lambda x: _is_finite(x) and x >= 0,
           'a number that is not negative')


def check_fraction(**values: float) -> None:
    """Raise a ``ValueError`` unless each value is in [0, 1]."""
    _check(values, lambda x: _is_finite(x) and 0 <= x <= 1,
           'a number in [0, 1]')


def check_divides(**values: int | Sequence[int]) -> None:
    """Raise a ``ValueError`` unless the first value divides the others.

    Args:
        **values: A positive integer, then integers or sequences of them:
            ``check_divides(num_heads=8, embed_dims=512)``.
    """
    (name, divisor), *others = values.items()
    check_count(**{name: divisor})
    for other, value in others:
        for number in (value, ) if _is_integer(value) else value:
            if number % divisor:
                raise ValueError(f'{other}={value} is not divisible by '
                                 f'{name}={divisor}')


def check_size(num_axes: int, **values: Sequence[int]) -> None:
    """Raise a ``ValueError`` unless each is ``num_axes`` positive integers."""
    _check(
        values, lambda x: isinstance(x, Sequence) and len(x) == num_axes and
        all(_is_integer(n) and n >= 1 for n in x),
        f'{num_axes} positive integers')


def to_pair(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """Height and width, of both or of one number for both.

    Raises:
        ValueError: If they are not positive integers.
    """
    pair = (value, value) if _is_integer(value) else value
    _check({name: value},
           lambda _: isinstance(pair, Sequence) and len(pair) == 2 and all(
               _is_integer(n) and n >= 1 for n in pair),
           'a positive integer, or two')
    return tuple(pair)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(
        value, bool) and math.isfinite(value)


def _check(values: dict[str, Any], is_right: Callable[[Any], bool],
           wanted: str) -> None:
    for name, value in values.items():
        if not is_right(value):
            raise ValueError(f'{name} must be {wanted}, got {value!r}')
