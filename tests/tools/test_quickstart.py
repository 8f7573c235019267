# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from helpers import ROOT

from tools import quickstart


@pytest.fixture
def checkout(tmp_path):
    """Clone the checkout, and let the clone use the tests' environment."""
    for name in 'tools', 'configs', 'mmvidattn':
        shutil.copytree(ROOT / name, tmp_path / name,
                        ignore=shutil.ignore_patterns('__pycache__', '.mim'))
    (tmp_path / 'tools/setup_env.sh').write_text('echo prepared')
    make_venv(tmp_path / '.venv')
    return tmp_path


def make_venv(folder):
    python = folder / 'bin/python'
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)


def run(checkout, *options):
    return subprocess.run(
        ['bash', checkout / 'tools/quickstart.sh', *map(str, options)],
        cwd='/', capture_output=True, text=True)


@pytest.mark.parametrize('top1, passes', [(90., True), (89.9, False)])
def test_fails_below_ninety_percent(monkeypatch, capsys, top1, passes):
    monkeypatch.setattr(quickstart.os, 'chdir', lambda path: None)
    monkeypatch.setattr(sys, 'argv', ['quickstart.py'])
    for name, value in dict(
            make_videos=None, train=Path('best.pth'), test=top1,
            predict=[Path('a.png'), Path('a.mp4')]).items():
        monkeypatch.setattr(quickstart.Quickstart, name,
                            lambda *_, value=value: value)
    with nullcontext() if passes else pytest.raises(
            SystemExit, match='expected at least 90 %'):
        quickstart.main()
    out = capsys.readouterr().out
    assert f'==> top-1 {top1:.1f} %' in out
    # The end of a run names a picture and the next command.
    assert ('a.png' in out and 'mmvidattn predict VIDEO' in out) == passes


def test_passes_its_options_on_and_stops_at_a_failure(checkout, tmp_path):
    make_venv(tmp_path / 'other')
    (checkout / 'tools/quickstart.py').write_text(
        'import sys; print(sys.argv[1:])')
    done = run(checkout, '--short', '--venv', tmp_path / 'other')
    assert "['--short']" in done.stdout and 'prepared' not in done.stdout
    done = run(checkout)
    assert done.stdout.splitlines()[1:2] == ['prepared']
    assert '[]' in done.stdout
    assert run(checkout, '--long').returncode == 2
    (checkout / 'tools/setup_env.sh').write_text('exit 3')
    done = run(checkout)
    assert done.returncode == 3 and '[]' not in done.stdout
