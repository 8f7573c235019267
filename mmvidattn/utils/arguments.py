# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Validation of arguments by their annotations.

Only :func:`check_arguments` checks single arguments. The decorated code trusts
them, and only checks combinations of arguments.
"""
import difflib
import functools
import inspect
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np


@dataclass(frozen=True)
class Range:
    """Range of numbers in an annotation such as :data:`Count`.

    Attributes:
        text: Description for errors.
        contains: Function that returns True if a finite number is in the
            range.
    """
    text: str
    contains: Callable[[float], bool]


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(
        value, (bool, np.bool_)) and bool(np.isfinite(value))


# Descriptions and checks of plain types.
PLAIN: dict[Any, tuple[str, Callable[[Any], bool]]] = {
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
            _suggest(target, signature, kwargs)
            given = {}
        annotations = {**_hints(function), **hints}
        for name, value in given.items():
            if name in annotations and signature.parameters[name].kind not in (
                    inspect.Parameter.VAR_POSITIONAL,
                    inspect.Parameter.VAR_KEYWORD):
                check_type(name, value, annotations[name])
        return function(*args, **kwargs)

    if not is_class:
        return checked
    target.__init__ = checked
    return target


def check_type(name: str, value: Any, annotation: Any) -> None:
    """Raise a ``ValueError`` if a value does not match an annotation.

    A sequence may be a list or a tuple. A path is accepted as text. Numbers
    must be finite, and bools are not numbers.
    """
    if not _matches(value, annotation):
        raise ValueError(
            f'{name} must be {_describe(annotation)}, got {value!r}')


def _suggest(target: Callable, signature: inspect.Signature,
             names: Iterable[str]) -> None:
    """Raise a ``TypeError`` if an unknown name is similar to a known one."""
    known = signature.parameters
    for name in names:
        close = difflib.get_close_matches(name, known, 1)
        if close and name not in known:
            raise TypeError(f'{target.__qualname__} has no argument {name!r}; '
                            f'did you mean {close[0]!r}?')


@functools.cache
def _hints(function: Callable) -> dict[str, Any]:
    return typing.get_type_hints(function, include_extras=True)


def _matches(value: Any, annotation: Any) -> bool:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        kind, allowed = args
        return _matches(value, kind) and allowed.contains(value)
    if annotation in (Any, inspect.Parameter.empty) or isinstance(
            annotation, typing.TypeVar):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_matches(value, arg) for arg in args)
    if annotation in PLAIN:
        return PLAIN[annotation][1](value)
    if origin is typing.Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    kind = origin or annotation
    if kind is Callable:
        return callable(value)
    if not isinstance(kind, type):
        return True
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping) and all(
            _matches(x, args[1]) for x in value.values() if len(args) == 2)
    if not issubclass(kind, Sequence):
        return isinstance(value, kind)
    if isinstance(value, (str, bytes)) or not isinstance(
            value, (Sequence, np.ndarray)):
        return False
    if kind is tuple and args and args[-1] is not Ellipsis:
        return len(value) == len(args) and all(map(_matches, value, args))
    return all(_matches(x, args[0]) for x in value) if args else True


def _describe(annotation: Any) -> str:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return args[1].text
    if origin in (typing.Union, types.UnionType):
        return ' or '.join(_describe(arg) for arg in args)
    if annotation in PLAIN:
        return PLAIN[annotation][0]
    if origin is typing.Literal:
        return f'one of {args}'
    kind = origin or annotation
    if kind is Callable:
        return 'a function'
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return 'a dict'
    if isinstance(kind, type) and issubclass(kind, Sequence):
        if kind is tuple and args and args[-1] is not Ellipsis:
            return f'a sequence of {", ".join(map(_describe, args))}'
        return f'a sequence of {_describe(args[0])} each' if args else (
            'a sequence')
    return f'of type {getattr(kind, "__name__", kind)}'
