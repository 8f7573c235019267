# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Constructors of all registered classes."""
import inspect
import re
from pathlib import Path

import pytest
from registered import find_kinds

KINDS = find_kinds()
TESTS = Path(__file__).parent
# A contract runs over all classes of its kind, also over new ones.
CONTRACTS = {
    'backbones': 'backbones/test_backbone_contract.py',
    'heads': 'heads/test_head_contract.py',
    'layers': 'layers/test_attention_contract.py',
    'losses': 'losses/test_loss_contract.py',
    'online': 'online/test_contract.py',
    'recognizers': 'recognizers/test_recognizer_contract.py'}
# Kinds without a common interface: each class has tests that name it.
OWN_TESTS = {'compat', 'datasets', 'datasets.transforms', 'engine',
             'engine.hooks', 'evaluation'}
# Classes that have no arguments, or pass them to a class that checks them.
UNCHECKED = ('DRN', 'DecordSegmentInit', 'ExactResumeHook',
             'SkippedVideosHook', 'VideoRunner')
CLASSES = [x for classes in KINDS.values() for x in classes
           if '__init__' in x.__dict__]


def test_every_class_has_a_contract_or_tests():
    assert KINDS.keys() == CONTRACTS.keys() | OWN_TESTS
    assert all((TESTS / path).is_file() for path in CONTRACTS.values())
    words = set()
    for path in TESTS.rglob('*.py'):
        if path != Path(__file__):
            words.update(re.findall(r'\w+', path.read_text()))
    assert not {cls.__name__ for kind in OWN_TESTS
                for cls in KINDS[kind]} - words


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
