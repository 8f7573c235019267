# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmvidattn.commands import doctor, main

ROOT = Path(__file__).resolve().parents[2]
FINE = {'mmcv-lite': '2.1.0', 'opencv-python': '5.0.0.93',
        'opencv-contrib-python': '5.0.0.93'}


@pytest.mark.parametrize('checks', [
    ('numpy', ), pytest.param((*doctor.CHECKS, ), marks=pytest.mark.slow)],
    ids=len)
def test_this_environment_is_fine(monkeypatch, capsys, checks):
    # Without the start of a process.
    exec(doctor.CHECKS['prediction'], {})
    assert capsys.readouterr().out.startswith('move right, ')
    monkeypatch.setattr(doctor, 'CHECKS', {
        name: doctor.CHECKS[name] for name in checks})
    with pytest.raises(SystemExit) as end:
        main(['doctor', '--json'])
    report = json.loads(capsys.readouterr().out)
    findings = {item['topic']: item for item in report['findings']}
    assert {'python', 'packages', *checks} <= findings.keys()
    assert {item['level'] for item in findings.values()} == {'ok'}, report
    assert report['ok'] and not end.value.code
    assert 'mmaction2 1.2.0' in findings['packages']['text']


@pytest.mark.parametrize('change, topic', [
    ({}, None),
    ({'opencv-python': '5.1.0.95'}, 'cv2'),
    ({'opencv-python-headless': '5.0.0.93'}, None),
    ({'opencv-python-headless': '4.11.0.86'}, 'cv2'),
    ({'mmcv': '2.1.0'}, 'mmcv')])
def test_packages_that_overwrite_each_other(change, topic):
    problems = [name for level, name, _ in doctor.check_versions(
        FINE | change) if level == 'problem']
    assert problems == ([topic] if topic else [])


def test_broken_and_crashing_modules_are_named(tmp_path, monkeypatch, capsys):
    (tmp_path / 'torch.py').write_text(
        'raise OSError("libcudart.so.13: no\\x1b[2J such file")')
    (tmp_path / 'av.py').write_text('import os; os._exit(132)')
    # The folder that an uninstalled package left behind.
    (tmp_path / 'cv2').mkdir()
    (tmp_path / 'cv2/__init__.py').touch()
    # The others take seconds.
    monkeypatch.setattr(doctor, 'CHECKS', {
        name: doctor.CHECKS[name] for name in ('torch', 'av', 'cv2', 'mmcv')})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(['doctor'])
    out, error = capsys.readouterr()
    for line in (r'problem  torch: .*OSError: libcudart.so.13: no\\x1b\[2J',
                 r'problem  av: exit status 132: $',
                 r"problem  cv2: .*no attribute 'resize'",
                 r'problem  mmcv: .*Error', r'ok       python: '):
        assert re.search(f'^{line}', out, re.MULTILINE), out
    assert 'Traceback' not in out + error
    assert end.value.code == 1
    count = out.count('\nproblem ')
    assert out.splitlines()[-1] == f'{count} problems'


def test_home_folder_is_not_revealed(monkeypatch, capsys):
    monkeypatch.setattr(Path, 'home', lambda: Path('/home/jane'))
    monkeypatch.setattr(doctor, 'collect', lambda: iter(
        [('note', 'numpy', 'in /home/jane/env')]))
    with pytest.raises(SystemExit):
        main(['doctor'])
    assert capsys.readouterr().out == (
        'note     numpy: in ~/env\nno problems\n')


def test_commands_that_cannot_be_imported_point_to_it(tmp_path):
    (tmp_path / 'torch.py').write_text('raise ImportError("broken")')
    done = subprocess.run(
        [sys.executable, '-m', 'mmvidattn', 'train', 'config.py'],
        env=dict(os.environ, PYTHONPATH=f'{tmp_path}{os.pathsep}{ROOT}'),
        text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith('`mmvidattn doctor` reports what is wrong')
    assert 'ImportError: broken' in done.stderr
