# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Generated wrong arguments for all our classes that a config can name."""
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence

import mmaction.registry
import mmengine.registry
import numpy as np
import pytest
from mmengine.registry import Registry

from mmvidattn.datasets.transforms import (
    CenteredSampleFrames,
    CharadesSampleFrames,
    FlowTenCrop,
    SpreadSampleFrames,
)
from mmvidattn.layers import FeatureFixation, NeighborShift
from mmvidattn.utils.arguments import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    Positive,
    Share,
    check_arguments,
)

# Numbers that each range excludes.
OUTSIDE = {Count: (0, -1), Natural: (-1, ), Positive: (0., -1), NotNegative: (
    -0.5, ), Fraction: (-0.1, 1.1), Share: (0., 1.1)}


def registered():
    """Return our classes that a config can build, by name."""
    results = {}
    for module in mmaction.registry, mmengine.registry:
        for registry in vars(module).values():
            if isinstance(registry, Registry):
                results.update((cls.__name__, cls)
                               for cls in registry.module_dict.values()
                               if cls.__module__.startswith('mmvidattn.'))
    # Layers that get their options from a dict in a config.
    results |= {cls.__name__: cls for cls in (FeatureFixation, NeighborShift)}
    # Skip a stand-in of compat, and the runner, which checks no arguments.
    return {name: cls for name, cls in sorted(results.items())
            if name not in ('DRN', 'VideoRunner')}


def options_of(hint):
    """Return the members of a union, or the annotation itself."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return hint,


def wrong_values(hint):
    """Yield values that do not fit an annotation."""
    options = options_of(hint)
    if {typing.Any, inspect.Parameter.empty} & {*options}:
        return
    for value in (
            -1, 0, 0., -0.5, -0.1, 1.1, 1.5, True, math.nan, math.inf, None,
            'no such choice', [], {}, object()):
        if not any(fits(value, option) for option in options):
            yield value


def fits(value, hint):
    """Return True if a value fits a single annotation."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint in OUTSIDE:
        kind = typing.get_args(hint)[0]
        return (number and value not in OUTSIDE[hint] and value == value
                and abs(value) < math.inf
                and (kind is float or isinstance(value, int))
                and not (value < 0 or hint in (Fraction, Share) and value > 1)
                and not (value == 0 and hint in (Count, Positive, Share)))
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        return any(value is x for x in typing.get_args(hint))
    if hint in (int, float):
        return number and math.isfinite(value) and (
            hint is float or isinstance(value, int))
    if hint in (str, bool, type(None)):
        return isinstance(value, hint)
    if origin is Callable:
        return False
    if issubclass(origin, Mapping):
        return isinstance(value, dict)
    if issubclass(origin, Sequence):
        args = typing.get_args(hint)
        fixed = origin is tuple and args and args[-1] is not Ellipsis
        return isinstance(value, list) and not fixed
    return isinstance(value, origin)


def arguments():
    """Yield (class, argument name, annotation)."""
    for cls in registered().values():
        hints = typing.get_type_hints(cls.__init__, include_extras=True)
        for parameter in inspect.signature(cls).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL,
                                      parameter.VAR_KEYWORD):
                yield cls, parameter.name, hints.get(
                    parameter.name, parameter.empty)


def test_wrong_arguments_are_named():
    count = 0
    for cls, name, hint in arguments():
        if not hasattr(cls.__init__, '__wrapped__'):
            continue
        for value in wrong_values(hint):
            count += 1
            with pytest.raises(ValueError) as error:
                cls(**{name: value})
            assert str(error.value).startswith(f'{name} must be '), cls
            assert str(error.value).endswith(f'got {value!r}'), cls
    assert count > 5000


def test_numbers_have_a_range():
    unlimited = set()
    for cls, name, hint in arguments():
        if cls.__init__.__qualname__.partition('.')[0] == cls.__name__:
            result = re.sub(r'Annotated\[(int|float), ', '', str(hint))
            if re.search(r"\b(int|float)\b", result):
                unlimited.add(name)
    # Labels, colors, and numbers with other ranges.
    assert unlimited == {
        'actions', 'alpha', 'encoder', 'fill', 'hue', 'implies', 'mean',
        'offset', 'supervision'}


def test_classes_check_their_arguments():
    unchecked = {
        name for name, cls in registered().items()
        # ``functools.wraps`` sets ``__wrapped__``.
        if not hasattr(cls.__init__, '__wrapped__')
        and any(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
                for p in inspect.signature(cls).parameters.values())}
    # mmengine defines their constructors.
    assert unchecked == {
        'AtomicCheckpointHook', 'FeatureStreamPreprocessor',
        'TolerantLoggerHook'}


@check_arguments
class _Example:

    def __init__(self, num_heads: Count, share: Fraction = 0.5,
                 sizes: Sequence[tuple[int, int]] = ((1, 2), ),
                 eps: float = 0., name: str | None = None,
                 layers: dict[str, int] | None = None, flag: bool = False,
                 anything=None, *args, **kwargs) -> None:
        self.num_heads = num_heads


@pytest.mark.parametrize('kwargs, message', [
    (dict(num_heads=0), 'num_heads must be a positive integer, got 0'),
    (dict(num_heads='2'), "num_heads must be a positive integer, got '2'"),
    (dict(num_heads=True), 'num_heads must be a positive integer, got True'),
    (dict(num_heads=2.), 'num_heads must be a positive integer, got 2.0'),
    (dict(share=1.5), r'share must be a number in \[0, 1\], got 1.5'),
    (dict(share=math.inf), r'share must be a number in \[0, 1\], got inf'),
    (dict(sizes=[(1, 2), (3, )]), 'sizes must be a sequence of a sequence of'),
    (dict(sizes='ab'), 'sizes must be a sequence'),
    (dict(eps='x'), "eps must be a number, got 'x'"),
    (dict(name=3), 'name must be text or None, got 3'),
    (dict(layers=dict(a='x')), 'layers must be a dict or None'),
    (dict(flag=1), 'flag must be True or False, got 1')])
def test_names_wrong_argument(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _Example(**{'num_heads': 2, **kwargs})


def test_accepts_right_arguments():
    _Example(np.int64(2), 1, [[1, 2], (3, 4)], -1., None, {}, np.bool_(True),
             'anything', 'x', other=math.nan)
    assert list(inspect.signature(_Example).parameters)[0] == 'num_heads'
    with pytest.raises(TypeError, match='num_heads'):
        _Example()


@pytest.mark.parametrize('build, kwargs', [
    (CenteredSampleFrames, dict(clip_len=0)),
    (SpreadSampleFrames, dict(clip_len=8, num_clips=-1)),
    (CharadesSampleFrames, dict(clip_len=8, frame_interval=0)),
    (FlowTenCrop, dict(crop_size=0)),
])
def test_checks_arguments_of_inherited_constructor(build, kwargs):
    name, value = list(kwargs.items())[-1]
    with pytest.raises(ValueError, match=f'{name} must be .*got {value}'):
        build(**kwargs)
