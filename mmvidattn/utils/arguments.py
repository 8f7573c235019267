# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One check of arguments, by their annotations.

:func:`check_arguments` is the only place where a single argument is checked:
a class or function behind it trusts what it is given, and only checks what
arguments must be together.
"""
import functools
import inspect
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np


@dataclass(frozen=True)
class Range:
    """The numbers that an annotation such as :data:`Count` allows.

    Attributes:
        text: What they are called in an error.
        holds: Whether a finite number is one of them.
    """
    text: str
    holds: Callable[[float], bool]


Count = Annotated[int, Range('a positive integer', lambda x: x >= 1)]
Natural = Annotated[int, Range('a non-negative integer', lambda x: x >= 0)]
Positive = Annotated[float, Range('a positive number', lambda x: x > 0)]
NotNegative = Annotated[float, Range('a number that is not negative',
                                     lambda x: x >= 0)]
Share = Annotated[float, Range('a number in (0, 1]', lambda x: 0 < x <= 1)]
Fraction = Annotated[float, Range('a number in [0, 1]', lambda x: 0 <= x <= 1)]


def check_arguments(target: Callable | None = None, **hints: Any) -> Any:
    """Have a class or function check its arguments by their annotations.

    A decorator that follows the decorator of the registry. It raises a
    ``ValueError`` that names the argument if a value has the wrong type, is
    outside of the :class:`Range`, or is not in the ``Literal``.

    Args:
        target: The class or function. An ``__init__`` that a class inherits
            from another package is checked as well.
        **hints: Annotations of arguments of an inherited ``__init__``.
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
        wanted = {**_hints(function), **hints}
        for name, value in given.items():
            if name in wanted and signature.parameters[name].kind not in (
                    inspect.Parameter.VAR_POSITIONAL,
                    inspect.Parameter.VAR_KEYWORD):
                check_type(name, value, wanted[name])
        return function(*args, **kwargs)

    if not is_class:
        return checked
    target.__init__ = checked
    return target


def check_type(name: str, value: Any, wanted: Any) -> None:
    """Raise a ``ValueError`` unless a value is of an annotated type.

    Sequences may be lists or tuples, paths may stand for text; numbers are
    finite, and neither text nor bools.
    """
    if not _is(value, wanted):
        raise ValueError(f'{name} must be {_describe(wanted)}, got {value!r}')


@functools.cache
def _hints(function: Callable) -> dict[str, Any]:
    return typing.get_type_hints(function, include_extras=True)


def _is(value: Any, wanted: Any) -> bool:
    origin, args = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is Annotated:
        kind, allowed = args
        return _is(value, kind) and allowed.holds(value)
    if wanted in (Any, inspect.Parameter.empty) or isinstance(
            wanted, typing.TypeVar):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_is(value, arg) for arg in args)
    if wanted in (None, types.NoneType):
        return value is None
    if wanted is bool:
        return isinstance(value, (bool, np.bool_))
    if wanted in (int, float):
        kind = Integral if wanted is int else Real
        return isinstance(value, kind) and not isinstance(
            value, (bool, np.bool_)) and bool(np.isfinite(value))
    if wanted is str:
        return isinstance(value, (str, os.PathLike))
    if origin is typing.Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    kind = origin or wanted
    if kind is Callable:
        return callable(value)
    if not isinstance(kind, type):
        return True
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping) and all(
            _is(x, args[1]) for x in value.values() if len(args) == 2)
    if issubclass(kind, Sequence):
        return _is_sequence(value, kind, args)
    return isinstance(value, kind)


def _is_sequence(value: Any, kind: type, args: tuple) -> bool:
    if isinstance(value, (str, bytes)) or not isinstance(
            value, (Sequence, np.ndarray)):
        return False
    if kind is tuple and args and args[-1] is not Ellipsis:
        return len(value) == len(args) and all(map(_is, value, args))
    return all(_is(x, args[0]) for x in value) if args else True


def _describe(wanted: Any) -> str:
    origin, args = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is Annotated:
        return args[1].text
    if origin in (typing.Union, types.UnionType):
        return ' or '.join(_describe(arg) for arg in args)
    names = {types.NoneType: 'None', bool: 'True or False',
             int: 'an integer', float: 'a number', str: 'text'}
    if wanted in names:
        return names[wanted]
    if origin is typing.Literal:
        return f'one of {args}'
    kind = origin or wanted
    if kind is Callable:
        return 'a function'
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return 'a dict'
    if isinstance(kind, type) and issubclass(kind, Sequence):
        if kind is tuple and args and args[-1] is not Ellipsis:
            return f'a sequence of {", ".join(map(_describe, args))}'
        of = f' of {_describe(args[0])} each' if args else ''
        return f'a sequence{of}'
    return f'of type {getattr(kind, "__name__", kind)}'
