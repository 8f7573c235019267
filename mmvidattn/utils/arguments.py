# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One check of the arguments of all classes that a config can build."""
import functools
import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from .checks import (
    check_count,
    check_fraction,
    check_natural,
    check_not_negative,
    check_positive,
)

# Ranges of numbers, by what arguments are called everywhere; the first that
# fits counts. An argument that has another meaning somewhere is given its
# range there: ``@check_arguments(eps=check_not_negative)``.
RANGES = (
    (r'long_memory_length|num_anticipation_tokens|num_temporal_layers|'
     r'anticipation_steps|smooth|long_steps|patch_padding|max_failures|'
     r'max_skips|(\w+_)?seed|\w+_index',
     check_natural),
    (r'num_\w+|\w+_dims|in_channels|clip_len|frame_interval|\w+_frames|'
     r'(img|patch|crop|window|dense_batch)_size|patch_stride|'
     r'work_memory_length|(long|work|anticipation)_rate|work_steps|pyramid|'
     r'pyramid_sizes|seq_shape|topk|k|interval',
     check_count),
    (r'drop(out)?|(\w+_)?(drop_rate|drop_path_rate|dropout_ratio|prob)|'
     r'shift_fraction|tail_below', check_fraction),
    (r'eps|norm_eps|(\w+_)?fps|mlp_ratio|feature_rate|timeout',
     check_positive),
    (r'loss_weight|(\w+_)?init_std|magnitude(_std)?|brightness|contrast|'
     r'saturation|gamma|weight', check_not_negative),
)


def check_arguments(cls: type | None = None, **ranges: Callable | None) -> Any:
    """Have a class check its arguments by their annotations and names.

    A decorator, below that of the registry. A value of another type, or a
    number outside of what ``RANGES`` says of arguments of this name, is a
    ``ValueError`` that names the argument, whatever the class does with it.

    Args:
        cls: The class. An ``__init__`` that it inherits from another package
            is checked as well.
        **ranges: Arguments with a range of their own, a function of
            :mod:`mmvidattn.utils.checks`; None for any number.
    """
    if cls is None:
        return functools.partial(check_arguments, **ranges)
    init = cls.__init__
    signature = inspect.signature(init)

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            given = {}
        hints = _hints(init)
        for name, value in given.items():
            kind = signature.parameters[name].kind
            if name in hints and kind not in (
                    inspect.Parameter.VAR_POSITIONAL,
                    inspect.Parameter.VAR_KEYWORD):
                check_type(name, value, hints[name])
                check = ranges[name] if name in ranges else _range_of(name)
                if check is not None:
                    for number in _numbers(value):
                        check(**{name: number})
        init(self, *args, **kwargs)

    cls.__init__ = checked
    return cls


def check_type(name: str, value: Any, wanted: Any) -> None:
    """Raise a ``ValueError`` unless a value is of an annotated type.

    Sequences may be lists or tuples, paths may stand for text; numbers are
    finite, and neither text nor bools.
    """
    if not _is(value, wanted):
        raise ValueError(f'{name} must be {_describe(wanted)}, got {value!r}')


@functools.cache
def _hints(function: Callable) -> dict[str, Any]:
    return typing.get_type_hints(function)


@functools.cache
def _range_of(name: str) -> Callable | None:
    return next((check for pattern, check in RANGES
                 if re.fullmatch(pattern, name)), None)


def _numbers(value: Any) -> list[Any]:
    """The numbers in a value, however deep in sequences and dicts."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [number for part in value for number in _numbers(part)]
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return [value] if is_number else []


def _is(value: Any, wanted: Any) -> bool:
    origin, args = typing.get_origin(wanted), typing.get_args(wanted)
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
        return value in args
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
