# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import new_process
import pytest
from compat_symptoms import SYMPTOMS

import mmvidattn
from mmvidattn import compat

HERE = Path(__file__).parent
PACKAGE = Path(mmvidattn.__file__).parent


@pytest.fixture(scope='module')
def results(tmp_path_factory, motion_dir) -> dict[str, Any]:
    """Return the outcomes of all symptoms and checks."""
    folder = tmp_path_factory.mktemp('symptoms')
    run = subprocess.run(
        [sys.executable, HERE / 'compat_symptoms.py', PACKAGE, folder,
         motion_dir], capture_output=True, text=True, timeout=600,
        env={**os.environ, 'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': '1',
             'PYTHONPATH': str(HERE.parent), 'TMPDIR': str(folder)})
    assert run.returncode == 0, run.stderr
    return json.loads((folder / 'results.json').read_text())


def test_every_workaround_has_a_symptom():
    assert {one.name for one in compat.WORKAROUNDS} == SYMPTOMS.keys()


@pytest.mark.parametrize('name', SYMPTOMS)
def test_workaround_removes_symptom(results, name):
    applied, without = results[name]
    assert applied is None
    assert without is not None, 'no symptom without the workaround'
    assert re.search(SYMPTOMS[name][1], without), without


@pytest.mark.parametrize('name', new_process.CHECKS)
def test_new_process(results, name):
    assert results[name] is None, results[name]


def test_second_application_has_no_effect():
    from mmaction.models.heads import BaseHead
    from mmengine.optim import AmpOptimWrapper
    once = BaseHead.__call__, AmpOptimWrapper.__init__
    compat.apply()
    assert (BaseHead.__call__, AmpOptimWrapper.__init__) == once


def test_rejects_unknown_workaround_to_skip(monkeypatch):
    monkeypatch.setenv(compat.SKIP, 'add_missing_drn,heal_all')
    with pytest.raises(ValueError, match='SKIP_PATCHES.*got heal_all$'):
        compat.apply()


def test_page_lists_all_workarounds():
    page = (HERE.parent / 'docs/workarounds.md').read_text('utf-8')
    rows = [line for line in page.splitlines() if line.startswith('| `')]
    expected = []
    for one in compat.WORKAROUNDS:
        words = re.split(r'\s+(Symptom|Until|Upstream): ',
                         ' '.join(one.function.__doc__.split()))
        doc = {'Upstream': 'not reported', **dict(zip(words[1::2],
                                                      words[2::2]))}
        expected.append(f'| `{one.name}` | {doc["Symptom"]} | '
                        f'{doc["Upstream"]} | {doc["Until"]} |')
    assert rows == expected


def test_commands_import_in_a_plain_shell():
    """The first import may be one that a workaround needs, too."""
    Path('none.csv').touch()
    done = subprocess.run(
        [sys.executable, '-m', 'mmvidattn', 'score', 'none.csv', 'none.csv'],
        capture_output=True, text=True)
    assert done.stderr.startswith('mmvidattn score: error: '), done.stderr


def test_workarounds_import_the_package_only_when_called():
    """An import of the package may be what applies a workaround."""
    for path in PACKAGE.glob('compat/*.py'):
        for function in ast.parse(path.read_text('utf-8')).body:
            for node in getattr(function, 'body', ()):
                assert getattr(node, 'level', 0) < 2, (path, node.lineno)


def test_torch_may_be_imported_first():
    Path('mine.py').write_text("_base_ = 'mmvidattn::vivit_tiny_motion.py'")
    subprocess.run([
        sys.executable, '-c', 'import torch, mmvidattn\n'
        'from mmengine.config import Config\n'
        'assert Config.fromfile("mine.py").model'], check=True)
