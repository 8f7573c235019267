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
from test_layers_of_imports import imports_of

import mmvidattn

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'mmvidattn'


def run(*command, **kwargs) -> str:
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, **kwargs)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def files_below(folder: Path, root: Path = ROOT) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for path in folder.rglob('*') if path.is_file()
        and path.suffix != '.pyc' and '.mim' not in path.parts
    }


@pytest.fixture(scope='module')
def source(tmp_path_factory) -> Path:
    """Copy the checkout, because a build writes into its folder."""
    copy = tmp_path_factory.mktemp('source') / 'mmvidattn'
    ignored = shutil.ignore_patterns(
        '.*', 'build', '*.egg-info', 'work_dirs', '__pycache__')
    shutil.copytree(
        ROOT, copy, symlinks=True, ignore=lambda folder, names: {
            *ignored(folder, names), *(['data'] if folder == str(ROOT) else ())
        })
    return copy


@pytest.fixture(scope='module')
def wheel(source) -> Path:
    run(sys.executable, '-m', 'pip', 'wheel', '--no-deps',
        '--no-build-isolation', '-w', source.parent, source)
    return next(source.parent.glob('*.whl'))


def test_wheel_holds_every_module_config_and_tool(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = {n for n in file.namelist() if '.dist-info/' not in n}
        licence = [n for n in file.namelist() if n.endswith('/LICENSE')]
        commands = next(file.read(n).decode() for n in file.namelist()
                        if n.endswith('.dist-info/entry_points.txt'))
    expected = files_below(PACKAGE)
    for folder in 'configs', 'tools':
        expected |= {
            f'mmvidattn/.mim/{name}'
            for name in files_below(ROOT / folder)
        }
    expected.add('mmvidattn/.mim/model-index.yml')
    assert names == expected
    assert 'mmvidattn/.mim/tools/run_tests.sh' in names
    assert len(licence) == 1
    assert 'mmvidattn = mmvidattn.commands:main' in commands.splitlines()
    assert wheel.name.startswith(f'mmvidattn-{mmvidattn.__version__}-')


def test_editable_install_links_configs_and_tools(source):
    run(sys.executable, 'setup.py', '-q', 'build_py', '--build-lib', 'lib',
        cwd=source)
    script = ('import sys; sys.argv = ["setup.py", "--version"]\n'
              'from setuptools.dist import Distribution\n'
              'import runpy; names = runpy.run_path("setup.py")\n'
              'command = names["BuildWithMim"](Distribution('
              'dict(packages=["mmvidattn"])))\n'
              'command.ensure_finalized(); command.editable_mode = True\n'
              'command.run(); command.run()\n')
    run(sys.executable, '-c', script, cwd=source)
    for name in 'configs', 'tools', 'model-index.yml':
        link = source / 'mmvidattn' / '.mim' / name
        assert link.is_symlink() and link.resolve() == source / name
        assert not (source / 'lib/mmvidattn/.mim' / name).is_symlink()


def requirement_names(text: str) -> set[str]:
    return {
        re.split(r'[\[<>=!;~ ]', name)[0].lower().replace('_', '-')
        for name in text.split('\n') if name
    }


@pytest.fixture(scope='module')
def required(wheel) -> set[str]:
    """Return the packages that the wheel requires, with all extras."""
    with zipfile.ZipFile(wheel) as file:
        metadata = next(
            file.read(n).decode() for n in file.namelist()
            if n.endswith('.dist-info/METADATA'))
    return requirement_names('\n'.join(
        re.findall('^Requires-Dist: (.*)$', metadata, re.M)))


def test_imported_packages_are_required(required):
    provides = dict(
        cv2='opencv-python', mmaction='mmaction2', mmcv='mmcv-lite',
        PIL='pillow', huggingface_hub='huggingface-hub',
        yaml='pyyaml')
    # mmaction2 installs these, or the code only checks for them, or an error
    # says to install them (transformers).
    indirect = {
        'packaging', 'pillow', 'pyyaml', 'scipy', 'matplotlib', 'rich',
        'torchvision', 'transformers'
    }
    for path in PACKAGE.rglob('*.py'):
        if '.mim' in path.parts:
            continue
        for module in imports_of(path):
            top = module.partition('.')[0]
            if top not in (*sys.stdlib_module_names, 'mmvidattn'):
                assert provides.get(top, top).lower() in (
                    required | indirect), f'{path}: {module}'


def test_requirements_are_pinned(required):
    lines = (ROOT / 'requirements/constraints.txt').read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith('#')]
    assert all('==' in pin for pin in pins)
    assert required <= requirement_names('\n'.join(pins))


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
