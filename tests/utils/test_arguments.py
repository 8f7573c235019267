# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Arguments of all our classes that a config can name."""
import inspect
import math
import re
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import mmaction.registry
import mmengine.registry
import numpy as np
import pytest
from mmengine.registry import Registry

from mmvidattn.layers import FeatureFixation, NeighborShift
from mmvidattn.registry import OLD_NAMES, PACKAGES
from mmvidattn.utils.arguments import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    Positive,
    Share,
    check_arguments,
    check_divides,
    check_type,
    to_pair,
)

# Numbers that each range excludes.
OUTSIDE = {Count: (0, -1), Natural: (-1, ), Positive: (0., -1), NotNegative: (
    -0.5, ), Fraction: (-0.1, 1.1), Share: (0., 1.1)}
REGISTRIES = {id(one): one for module in (mmaction.registry, mmengine.registry)
              for one in vars(module).values() if isinstance(one, Registry)}
CLASSES = {
    cls.__name__: cls for registry in REGISTRIES.values()
    for cls in registry.module_dict.values()
    if cls.__module__.startswith('mmvidattn.')
    # A stand-in of compat, and the runner, which checks no arguments.
    and cls.__name__ not in ('DRN', 'VideoRunner')}
# Layers that get their options from a dict in a config.
CLASSES |= {cls.__name__: cls for cls in (FeatureFixation, NeighborShift)}


def options_of(hint):
    """Return the members of a union, or the annotation itself."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return hint,


def wrong_values(hint):
    """Yield values that no type of an annotation allows."""
    options = {*options_of(hint)} - {types.NoneType}
    if {typing.Any, inspect.Parameter.empty} & options:
        return
    yield object()
    if all(option in OUTSIDE for option in options):
        yield from (True, math.nan, math.inf, 'no such choice', [])
        yield from set.intersection(*({*OUTSIDE[one]} for one in options))
    elif all(typing.get_origin(one) is typing.Literal or one in (
            int, float, bool, *OUTSIDE) for one in options):
        yield 'no such choice'


def arguments():
    """Yield (class, argument name, annotation)."""
    for cls in CLASSES.values():
        hints = typing.get_type_hints(cls.__init__, include_extras=True)
        for parameter in inspect.signature(cls).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL,
                                      parameter.VAR_KEYWORD):
                yield cls, parameter.name, hints.get(
                    parameter.name, parameter.empty)


def test_a_lookup_finds_each_class():
    """Each class is in the ``__all__`` of a package of its registry."""
    names = {
        name: {public for package in packages for public in vars(
            __import__(f'mmvidattn.{package}', fromlist='_'))['__all__']}
        for name, packages in PACKAGES.items()}
    count = 0
    for registry in REGISTRIES.values():
        for name, cls in registry.module_dict.items():
            if cls.__module__.startswith('mmvidattn.') and name != 'DRN':
                count += 1
                assert name in names[registry.name], name
                assert registry.get(name) is cls
    assert count > 80
    for old, new in OLD_NAMES.items():
        assert any(old in registry and registry.get(old).__name__ == new
                   for registry in vars(mmaction.registry).values()
                   if isinstance(registry, Registry) and registry.get(new)
                   ), old


def test_wrong_arguments_are_named():
    count, unchecked = 0, set()
    for cls, name, hint in arguments():
        # ``functools.wraps`` sets ``__wrapped__``.
        if not hasattr(cls.__init__, '__wrapped__'):
            unchecked.add(cls.__name__)
            continue
        for value in wrong_values(hint):
            count += 1
            with pytest.raises(ValueError) as error:
                cls(**{name: value})
            assert str(error.value).startswith(f'{name} must be '), cls
            assert str(error.value).endswith(f'got {value!r}'), cls
    assert count > 1500
    # mmengine and mmaction2 define their constructors.
    assert unchecked == {'DecordSegmentInit', 'FeatureStreamPreprocessor',
                         'TolerantLoggerHook'}


def test_numbers_have_a_range():
    unlimited = set()
    for cls, name, hint in arguments():
        if cls.__init__.__qualname__.partition('.')[0] == cls.__name__:
            result = re.sub(r'Annotated\[(int|float), ', '', str(hint))
            if re.search(r"\b(int|float)\b", result):
                unlimited.add(name)
    # Labels, colors, and numbers with other ranges.
    assert unlimited == {
        'actions', 'encoder', 'forget', 'hue', 'mean', 'offset',
        'supervision'}


def test_documented_defaults_are_the_defaults():
    """Compare the texts after "Defaults to" of the Args sections."""
    count = 0
    for cls in CLASSES.values():
        section = re.search(r'\nArgs:\n(.*?)(?=\n\S|\Z)',
                            inspect.getdoc(cls) or '', re.DOTALL)
        parameters = inspect.signature(cls.__init__).parameters
        for name, text in re.findall(
                r'^    (\w+): (.*?)(?=^    \w+[:,]|\Z)',
                section[1] if section else '', re.DOTALL | re.MULTILINE):
            match = re.search(r'Defaults\s+to\s+([^\s;]+)', text)
            if not match or name not in parameters:
                continue
            text = match[1].strip("`'.,")
            default = parameters[name].default
            if isinstance(default, (bool, str)):
                assert text == str(default), (cls, name)
            elif isinstance(default, (int, float)):
                count += 1
                assert float(text.replace(',', '')) == default, (cls, name)
    assert count > 50


@pytest.mark.parametrize('annotation, value, text', [
    (Count, True, 'a positive integer'), (float, math.nan, 'a number'),
    (Fraction, 10**400, 'a number in .0, 1.'), (bool, 1, 'True or False'),
    (Sequence[tuple[int, int]], [(1, 2), (3, )],
     'a sequence of a sequence of an integer, an integer each'),
    (Sequence[int], 'ab', 'a sequence'), (str | None, 3, 'text or None'),
    (dict[str, int], dict(a='x'), 'a dict'), (Literal[1], True, '1'),
    (Literal['a', 'b'], 'c', "one of 'a', 'b'")])
def test_names_wrong_argument(annotation, value, text):
    with pytest.raises(ValueError, match=f'^x must be {text}.*, got '):
        check_type('x', value, annotation)


def test_accepts_right_arguments():
    for annotation, value in (
            (Count, np.int64(2)), (Fraction, 1), (float, -1.),
            (Sequence[tuple[int, int]], [[1, 2], (3, 4)]), (str | None, None),
            (dict[str, int], {}), (bool, np.bool_(True)), (str, Path('a')),
            (Literal['a', None], None)):
        check_type('x', value, annotation)

    @check_arguments
    def function(num_heads: Count, anything=None, *args: int, **kwargs: int):
        return num_heads

    assert function(2, 'x', 'y', other=math.nan) == 2
    assert list(inspect.signature(function).parameters)[0] == 'num_heads'
    with pytest.raises(TypeError, match='num_heads'):
        function()
    with pytest.raises(ValueError, match='^num_heads must be .*, got 0'):
        function(0)
    check_divides(num_heads=4, embed_dims=8, sizes=(4, 12))
    for values, message in (
            (dict(num_heads=3, embed_dims=8),
             'embed_dims=8 is not divisible by num_heads=3'),
            (dict(patch=4, size=(8, 6)), r'size=\(8, 6\) is not .* patch=4')):
        with pytest.raises(ValueError, match=message):
            check_divides(**values)
    assert (to_pair(5), to_pair([2, 3])) == ((5, 5), (2, 3))
