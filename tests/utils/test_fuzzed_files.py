# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Damaged and forged files are loaded or refused, and kill no process."""
import sys

import pytest

if sys.platform != 'linux':
    pytest.skip('needs /proc and RLIMIT_AS', allow_module_level=True)
from fuzzed_files import (
    FORMATS,
    forged_files,
    mutate,
    outcome_of,
    outcomes,
    valid_files,
)


@pytest.mark.parametrize('kind', FORMATS)
def test_valid_files_load(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    for data in valid_files(kind):
        assert outcome_of(kind, data) == 'loaded'


def test_refuses_forged_files(tmp_path):
    files = forged_files()
    result = outcomes([(name, *file) for name, file in files.items()],
                      tmp_path, 100)
    assert not {name: outcome for name, outcome in result.items()
                if not outcome.startswith('refused')}
    assert len(result) == len(files) > 80


@pytest.mark.parametrize('count', [
    40, pytest.param(2000, marks=pytest.mark.slow)])
def test_loads_or_refuses_mutated_files(tmp_path, count):
    results = {}
    for start in range(0, count, 40):
        (tmp_path / str(start)).mkdir()
        results |= outcomes(
            [(f'{kind} {start + i}', kind, None)
             for kind in FORMATS for i in range(40)], tmp_path / str(start),
            60)
    assert not {name: outcome for name, outcome in results.items()
                if outcome.startswith('WRONG')}
    assert len(results) == count * len(FORMATS)
    # Mutations are neither all fatal nor all without effect.
    loaded = sum(outcome == 'loaded' for outcome in results.values())
    assert 0.03 < loaded / len(results) < 0.75


def test_detects_death_of_process(tmp_path, monkeypatch):
    import os

    import fuzzed_files
    monkeypatch.setattr(fuzzed_files, 'outcome_of',
                        lambda kind, data: os.kill(os.getpid(), 11))
    result = outcomes([('pkl 7', 'pkl', None)], tmp_path, 10)
    assert result == {'pkl 7': 'WRONG: exit code -11'}
    assert mutate('pkl', 7) == mutate('pkl', 7)
