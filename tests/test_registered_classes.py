# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Constructors of all registered classes."""
import re
from pathlib import Path

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


def test_every_class_has_a_contract_or_tests():
    assert KINDS.keys() == CONTRACTS.keys() | OWN_TESTS
    assert all((TESTS / path).is_file() for path in CONTRACTS.values())
    words = set()
    for path in TESTS.rglob('*.py'):
        if path != Path(__file__):
            words.update(re.findall(r'\w+', path.read_text()))
    assert not {cls.__name__ for kind in OWN_TESTS
                for cls in KINDS[kind]} - words
