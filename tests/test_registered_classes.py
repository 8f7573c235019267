# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Constructors of all registered classes."""
import inspect
import re

import mmaction.registry
import pytest
from mmengine.registry import Registry

# Classes that have no arguments, or pass them to a class that checks them.
UNCHECKED = ('DRN', 'DecordSegmentInit', 'ExactResumeHook',
             'SkippedVideosHook', 'VideoRunner')


def registered() -> list[type]:
    registries = [x for x in vars(mmaction.registry).values()
                  if isinstance(x, Registry)]
    results = {x for registry in registries
               for x in registry.module_dict.values()
               if inspect.isclass(x) and x.__module__.startswith('mmvidattn.')
               and '__init__' in x.__dict__}
    return sorted(results, key=lambda x: x.__name__)


CLASSES = registered()


def documented_defaults(cls: type) -> dict[str, str]:
    """Return the texts after "Defaults to" of the Args section."""
    section = re.search(r'\nArgs:\n(.*?)(?=\n\S|\Z)', inspect.getdoc(cls),
                        re.DOTALL)
    entries = re.findall(r'^    (\w+): (.*?)(?=^    \w+[:,]|\Z)',
                         section[1], re.DOTALL | re.MULTILINE)
    results = {name: re.search(r'Defaults\s+to\s+([^\s;]+)', text)
               for name, text in entries}
    return {name: match[1].strip("`'.,") for name, match in results.items()
            if match}


def test_finds_the_classes():
    names = {x.__name__ for x in CLASSES}
    assert len(names) > 80, len(names)
    assert {'LinearVideoTransformer', 'OnlineActionHead'} <= names
    assert documented_defaults(
        dict((x.__name__, x) for x in CLASSES)['OnlineActionHead'])[
            'dropout_ratio'] == '0'


@pytest.mark.parametrize(
    'cls', [x for x in CLASSES if x.__name__ not in UNCHECKED])
def test_constructor_checks_its_arguments(cls):
    assert hasattr(cls.__dict__['__init__'], '__wrapped__')


@pytest.mark.parametrize(
    'cls', [x for x in CLASSES if '\nArgs:\n' in (inspect.getdoc(x) or '')])
def test_documented_defaults_are_the_defaults(cls):
    arguments = inspect.signature(cls.__init__).parameters
    for name, text in documented_defaults(cls).items():
        if name not in arguments:
            continue
        default = arguments[name].default
        if isinstance(default, (bool, str)):
            assert text == str(default), name
        elif isinstance(default, (int, float)):
            assert float(text.replace(',', '')) == default, name
