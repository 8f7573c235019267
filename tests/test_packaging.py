# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from test_layers_of_imports import imports_of, modules

import mmvidattn

ROOT = Path(__file__).resolve().parent.parent
# Builds a wheel, and then runs what an editable install runs, twice.
BUILD = '''
import runpy, sys
from setuptools.dist import Distribution
sys.argv = ['setup.py', '-q', 'bdist_wheel', '-d', '..']
names = runpy.run_path('setup.py', run_name='__main__')
command = names['BuildWithMim'](Distribution(dict(packages=['mmvidattn'])))
command.ensure_finalized()
command.editable_mode = True
command.run()
command.run()
'''


@pytest.fixture(scope='module')
def source(tmp_path_factory) -> Path:
    """Build a wheel beside a copy of the checkout."""
    copy = tmp_path_factory.mktemp('source') / 'mmvidattn'
    ignored = shutil.ignore_patterns(
        '.*', 'build', '*.egg-info', 'work_dirs', '__pycache__')
    shutil.copytree(ROOT, copy, symlinks=True, ignore=lambda folder, names: {
        *ignored(folder, names), *['data'] * (folder == str(ROOT))})
    subprocess.run([sys.executable, '-c', BUILD], cwd=copy, check=True)
    return copy


@pytest.fixture(scope='module')
def wheel(source) -> dict[str, str]:
    """Contents of the wheel by the names of its files."""
    path, = source.parent.glob(f'mmvidattn-{mmvidattn.__version__}-*.whl')
    with zipfile.ZipFile(path) as file:
        return {re.sub('^mmvidattn-.*dist-info/', '', name): file.read(
            name).decode('utf-8', 'replace') for name in file.namelist()}


def test_wheel_holds_every_module_config_and_tool(wheel):
    expected = {'mmvidattn/.mim/model-index.yml'}
    for folder, target in (('mmvidattn', ''), ('configs', 'mmvidattn/.mim/'),
                           ('tools', 'mmvidattn/.mim/')):
        expected |= {
            f'{target}{path.relative_to(ROOT).as_posix()}'
            for path in (ROOT / folder).rglob('*') if path.is_file()
            and path.suffix != '.pyc' and '.mim' not in path.parts}
    assert expected == {name for name in wheel if name.startswith('mmvidattn')}
    assert 'mmvidattn/.mim/tools/run_tests.sh' in expected
    assert {'licenses/LICENSE', 'LICENSE'} & wheel.keys()
    assert 'mmvidattn = mmvidattn.commands:main' in wheel['entry_points.txt']


def test_editable_install_links_configs_and_tools(source):
    for name in 'configs', 'tools', 'model-index.yml':
        link = source / 'mmvidattn/.mim' / name
        assert link.is_symlink() and link.resolve() == source / name


def requirement_names(lines) -> set[str]:
    return {re.split(r'[\[<>=!;~ ]', line)[0].lower().replace('_', '-')
            for line in lines}


def test_requirements_name_the_imported_packages_and_are_pinned(wheel):
    required = requirement_names(
        re.findall('^Requires-Dist: (.*)$', wheel['METADATA'], re.M))
    lines = (ROOT / 'requirements/constraints.txt').read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith('#')]
    assert all('==' in pin for pin in pins)
    assert required <= requirement_names(pins)
    provides = dict(
        cv2='opencv-python', mmaction='mmaction2', mmcv='mmcv-lite',
        PIL='pillow', huggingface_hub='huggingface-hub', yaml='pyyaml')
    # mmaction2 installs these, or the code only checks for them, or an error
    # says to install them (transformers).
    indirect = {'packaging', 'pillow', 'pyyaml', 'scipy', 'matplotlib', 'rich',
                'torchvision', 'transformers', 'mmvidattn'}
    imported = {name.partition('.')[0] for path in modules().values()
                for name in imports_of(path)} - {*sys.stdlib_module_names}
    assert {provides.get(name, name).lower() for name in imported} <= (
        required | indirect)


def test_environment_script_refuses_an_old_python(tmp_path):
    (tmp_path / 'tools').mkdir()
    shutil.copy(ROOT / 'tools/setup_env.sh', tmp_path / 'tools')
    old = tmp_path / 'python3'
    old.write_text('#!/bin/sh\n'
                   '[ "$1" = -V ] && echo Python 3.8.1 || exit 1\n')
    old.chmod(0o755)
    for python, message in (old, 'is Python 3.8.1'), ('no', 'no not found'):
        done = subprocess.run(
            ['bash', tmp_path / 'tools/setup_env.sh'], text=True,
            env={**os.environ, 'PYTHON': str(python)}, capture_output=True)
        assert done.returncode == 1 and message in done.stderr
        assert 'Python 3.10 or newer' in done.stderr
    assert not (tmp_path / '.venv').exists()


def test_workflow_runs_the_commands_of_the_readme():
    text = (ROOT / '.github/workflows/ci.yml').read_text()
    job = yaml.safe_load(text)['jobs']['readme']
    commands = job['strategy']['matrix']['command']
    assert [step['run'] for step in job['steps'] if 'run' in step] == [
        '${{ matrix.command }}']
    documented = [line.partition('#')[0].strip() for line in (
        ROOT / 'README.md').read_text().splitlines()]
    assert len(commands) == 2 and set(commands) <= set(documented)
