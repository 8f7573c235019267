# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of arguments: by their annotations, and of their combinations.

Only :func:`check_arguments` checks single arguments. The decorated code trusts
them, and only checks combinations of arguments.
"""
import difflib
import functools
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
import torch


@dataclass(frozen=True)
class Range:
    """Range of finite numbers in an annotation such as :data:`Count`.

    ``text`` describes it in errors.
    """
    text: str
    contains: Callable[[float], bool]


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(
        value, (bool, np.bool_)) and bool(-math.inf < value < math.inf)


# Descriptions and checks of plain types.
PLAIN: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    Any: ('anything', lambda x: True),
    types.NoneType: ('None', lambda x: x is None),
    bool: ('True or False', lambda x: isinstance(x, (bool, np.bool_))),
    int: ('an integer', lambda x: _is_number(x, Integral)),
    float: ('a number', lambda x: _is_number(x, Real)),
    str: ('text', lambda x: isinstance(x, (str, os.PathLike)))}
Count = Annotated[int, Range('a positive integer', lambda x: x >= 1)]
Natural = Annotated[int, Range('a non-negative integer', lambda x: x >= 0)]
Positive = Annotated[float, Range('a positive number', lambda x: x > 0)]
NotNegative = Annotated[float, Range('a non-negative number',
                                     lambda x: x >= 0)]
Share = Annotated[float, Range('a number in (0, 1]', lambda x: 0 < x <= 1)]
Fraction = Annotated[float, Range('a number in [0, 1]', lambda x: 0 <= x <= 1)]


def check_arguments(target: Callable | None = None, **hints: Any) -> Any:
    """Decorate a class or function to check its arguments by annotation.

    Place the decorator below the registry's decorator. A ``ValueError`` names
    an argument that has the wrong type, is outside of its :class:`Range`, or
    is not in its ``Literal``.

    Args:
        target: Class or function. An ``__init__`` inherited from another
            package is checked as well.
        **hints: Annotations for arguments of an inherited ``__init__``.
    """
    if target is None:
        return functools.partial(check_arguments, **hints)
    is_class = isinstance(target, type)
    function = target.__init__ if is_class else target
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind_partial(*args, **kwargs).arguments
        except TypeError:
            given = {}
        annotations = {**_hints(function), **hints}
        for name, value in given.items():
            if name in annotations and signature.parameters[name].kind not in (
                    inspect.Parameter.VAR_POSITIONAL,
                    inspect.Parameter.VAR_KEYWORD):
                check_type(name, value, annotations[name])
        try:
            return function(*args, **kwargs)
        except TypeError:
            suggest_argument(target, kwargs)
            raise

    if not is_class:
        return checked
    target.__init__ = checked
    return target


def check_type(name: str, value: Any, annotation: Any) -> None:
    """Raise a ``ValueError`` if a value does not match an annotation.

    A sequence may be a list or a tuple. A path is accepted as text. Numbers
    must be finite, and bools are not numbers.
    """
    text, matches = _rule(annotation)
    if not matches(value):
        raise ValueError(f'{name} must be {text}, got {value!r}')


def suggest_argument(target: Callable, names: Iterable[str],
                     cutoff: float = .6) -> None:
    """Raise a ``TypeError`` that names the arguments like an unknown name.

    If none is similar, it lists all arguments of a function without
    ``**kwargs``. ``cutoff`` is the least similarity, as in ``difflib``.
    """
    functions = [one.__init__ for one in target.__mro__] if isinstance(
        target, type) else [target]
    known = {name for one in functions
             for name in inspect.signature(one).parameters}
    own = inspect.signature(functions[0]).parameters
    is_open = any(one.kind is one.VAR_KEYWORD for one in own.values())
    for name in names:
        close = difflib.get_close_matches(name, known, 1, cutoff)
        if name not in known and (close or not is_open):
            raise TypeError(
                f'{target.__qualname__} has no argument {name!r}; '
                + (f'did you mean {close[0]!r}?' if close else 'it has '
                   + ', '.join(one for one in own if one != 'self')
                   + '. A base config may set it: _delete_=True removes its '
                   'options'))


@functools.cache
def _hints(function: Callable) -> dict[str, Any]:
    return typing.get_type_hints(function, include_extras=True)


@functools.cache
def _rule(annotation: Any) -> tuple[str, Callable[[Any], bool]]:
    """Return the description and the check of an annotation."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in PLAIN:
        return PLAIN[annotation]
    if origin is Annotated:
        _, matches = _rule(args[0])
        return args[1].text, lambda x: matches(x) and args[1].contains(x)
    if origin in (typing.Union, types.UnionType):
        texts, checks = zip(*map(_rule, args))
        return ' or '.join(texts), lambda x: any(fits(x) for fits in checks)
    if origin is typing.Literal:
        names = ', '.join(map(repr, args))
        return names if len(args) == 1 else f'one of {names}', lambda x: any(
            type(x) is type(arg) and x == arg for arg in args)
    kind = origin or annotation
    if kind is Callable:
        return 'a function', callable
    if not isinstance(kind, type):
        # A type variable.
        return PLAIN[Any]
    if issubclass(kind, Mapping):
        _, matches = _rule(args[1] if args else Any)
        return 'a dict', lambda x: isinstance(x, Mapping) and all(
            map(matches, x.values()))
    if not issubclass(kind, Sequence):
        return f'of type {kind.__name__}', lambda x: isinstance(x, kind)
    if kind is tuple and args and args[-1] is not Ellipsis:
        texts, checks = zip(*map(_rule, args))
        return f'a sequence of {", ".join(texts)}', lambda x: (
            _is_sequence(x) and len(x) == len(checks)
            and all(fits(item) for fits, item in zip(checks, x)))
    text, matches = _rule(args[0] if args else Any)
    return 'a sequence' + f' of {text} each' * bool(args), lambda x: (
        _is_sequence(x) and all(map(matches, x)))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(
        value, (str, bytes))


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
