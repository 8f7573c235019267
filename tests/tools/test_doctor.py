# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmvidattn.cli import doctor

ROOT = Path(__file__).resolve().parents[2]
FINE = {'mmaction2': '1.2.0', 'mmengine': '0.10.7', 'mmcv-lite': '2.1.0',
        'torch': '2.13.0', 'numpy': '2.4.6', 'opencv-python': '5.0.0.93',
        'opencv-contrib-python': '5.0.0.93', 'setuptools': '80.10.2',
        'moviepy': '1.0.3', 'transformers': '4.55.4'}
# Changed versions of each fault; its topic, level and part of its remedy.
CONFLICTS = dict(
    both_mmcv=({'mmcv': '2.1.0'}, 'mmcv', 'problem',
               'pip uninstall -y mmcv mmcv-lite'),
    new_mmcv=({'mmcv-lite': '2.2.0'}, 'mmcv', 'problem', 'mmcv-lite==2.1.0'),
    fork_alone=({'onedl-mmengine': '0.10.12', 'mmengine': None}, 'mmengine',
                'note', 'pip uninstall -y onedl-mmengine'),
    fork_beside=({'onedl-mmengine': '0.10.12'}, 'mmengine', 'problem',
                 'pip uninstall -y onedl-mmengine mmengine'),
    fork_of_mmcv=({'onedl-mmcv': '2.3.6', 'mmcv-lite': None}, 'mmcv',
                  'problem', 'pip uninstall -y mmcv mmcv-lite onedl-mmcv'),
    opencvs=({'opencv-python-headless': '4.11.0.86'}, 'opencv', 'problem',
             'opencv-python-headless==5.0.0.93'),
    old_opencv=({'opencv-python': '4.9.0.80', 'opencv-contrib-python': None},
                'numpy', 'problem', 'pip install -U opencv-python;'),
    setuptools=({'setuptools': '82.0.1'}, 'setuptools', 'problem',
                'setuptools<81'),
    moviepy=({'moviepy': '2.1.2'}, 'moviepy', 'note', 'moviepy<2'),
    transformers=({'transformers': '5.0.0'}, 'transformers', 'note',
                  'transformers<4.56'))


def run(*args: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, '-m', 'mmvidattn_cli', 'doctor', *args],
        env=dict(os.environ, OMP_NUM_THREADS='1', **env), text=True,
        capture_output=True, timeout=600)


@pytest.mark.parametrize('fault', CONFLICTS)
def test_conflict_is_named_with_its_remedy(fault):
    change, topic, level, remedy = CONFLICTS[fault]
    results = {k: v for k, v in {**FINE, **change}.items() if v}
    item, = doctor.find_conflicts(results)
    assert (item['topic'], item['level']) == (topic, level)
    assert remedy in item['remedy']


def test_the_tests_environment_has_no_conflict():
    assert [*doctor.find_conflicts(FINE)] == []


@pytest.mark.parametrize('error, remedy', [
    ('libGL.so.1: cannot open shared object file', 'libgl1'),
    ('libgthread-2.0.so.0: cannot open shared object file', 'headless'),
    ("No module named 'pkg_resources'", 'setuptools<81'),
    ('operator torchvision::nms does not exist', 'only Grad-CAM needs'),
    ('A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.4',
     'numpy<2'),
    ('RuntimeError: Numpy is not available', 'numpy<2'),
    ('MMCV==2.3.6 is used but incompatible. Please install mmcv>=2.0.0rc4',
     'mmcv-lite==2.1.0'),
    ('libcudnn.so.9: cannot open shared object file', 'LD_LIBRARY_PATH'),
    ("No module named 'importlib_metadata'",
     'pip install importlib_metadata'),
    ('something else', 'mmvidattn doctor --json')])
def test_error_of_an_import_has_a_remedy(error, remedy):
    assert remedy in doctor.remedy_of(['another', error])


def test_home_folder_is_not_revealed(monkeypatch):
    monkeypatch.setattr(Path, 'home', lambda: Path('/home/jane'))
    assert doctor.one_line('in /home/jane/env:\n  no') == 'in ~/env: no'
    monkeypatch.setattr(Path, 'home', lambda: Path('/'))
    assert doctor.one_line('in /usr/lib') == 'in /usr/lib'


def test_only_the_standard_library_is_imported():
    tree = ast.parse(Path(doctor.__file__).read_text('utf-8'))
    names = {alias.name for node in tree.body if isinstance(node, ast.Import)
             for alias in node.names}
    names |= {node.module for node in tree.body
              if isinstance(node, ast.ImportFrom)}
    assert {name.partition('.')[0] for name in names} <= {
        *sys.stdlib_module_names}


def test_this_environment_is_fine():
    """Check the report of `doctor` on this environment."""
    done = run('--quick', '--json',
               MMVIDATTN_SKIP_PATCHES='score_in_float32',
               MMVIDATTN_DISPATCH='all', ONEDNN_MAX_CPU_ISA='AVX2')
    report = json.loads(done.stdout)
    assert [x for x in report['findings'] if x['level'] == 'problem'] == []
    assert done.returncode == 0 and report['ok'] and not done.stderr
    texts = {item['topic']: item['text'] for item in report['findings']}
    assert {'numpy', 'torch', 'cv2', 'mmcv', 'mmvidattn', 'cpu',
            'linear on cpu', 'depthwise_conv on cpu'} <= {*texts}
    assert 'ONEDNN_MAX_CPU_ISA=AVX2' in texts['cpu']
    assert report['variables']['ONEDNN_MAX_CPU_ISA'] == 'AVX2'
    # The only backend of this op is for training.
    assert texts['depthwise_conv on cpu'] == (
        'inference with the plain code (not frame by frame: no gradient is '
        'needed), training with frame by frame')
    assert 'inference with the plain code (not Triton: ' in \
        texts['push_row on cpu']
    assert report['packages']['mmaction2'] == '1.2.0'
    assert 'PyTorch' in report['environment']
    assert report['variables']['MMVIDATTN_SKIP_PATCHES'] == 'score_in_float32'
    assert ['score_in_float32 left out'] == [
        item['text'] for item in report['findings']
        if item['topic'] == 'workarounds' and item['level'] == 'note']


FAULTS = {
    'cv2.py': 'raise ImportError("libGL.so.1: cannot open shared object '
              'file: No such file or directory")',
    'torch/__init__.py': 'raise OSError("libcudart.so.13: cannot open shared '
                         'object file")',
    'torchvision.py': 'raise RuntimeError("operator torchvision::nms does not '
                      'exist")',
    'pkg_resources.py': 'raise ModuleNotFoundError("No module named '
                        '\'pkg_resources\'", name="pkg_resources")',
    'decord.py': 'import os, sys\nprint("bad instruction", file=sys.stderr)\n'
                 'os._exit(132)',
    **{f'{name}-{version}.dist-info/METADATA':
       f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
       for name, version in (
           ('mmcv', '2.1.0'), ('onedl_mmengine', '0.10.12'),
           ('opencv_python_headless', '4.8.0.74'), ('setuptools', '82.0.0'),
           ('transformers', '5.0.0'), ('moviepy', '2.1.2'))}}


@pytest.fixture(scope='module')
def broken(tmp_path_factory):
    """Run doctor with all faults: one import crashes, the package fails."""
    folder = tmp_path_factory.mktemp('broken')
    for name, text in FAULTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    done = run('--quick', PYTHONPATH=f'{folder}{os.pathsep}{ROOT}')
    assert 'Traceback' not in done.stdout + done.stderr
    return done


@pytest.mark.parametrize('line', [
    r'problem  mmcv: mmcv and mmcv-lite .* -> pip uninstall -y mmcv mmcv-lite',
    r'problem  mmengine: onedl-mmengine .* -> pip uninstall -y onedl-mmengine',
    r'problem  opencv: .*opencv-python-headless 4\.8.* -> pip uninstall',
    r'problem  setuptools: setuptools 82.0.0 .* -> pip install "setuptools<',
    r'note     transformers: transformers 5.0.0 .* -> pip install "transf',
    r'note     moviepy: moviepy 2.1.2 .* -> pip install "moviepy<2"',
    r'problem  cv2: .*libGL.* -> apt-get install libgl1',
    r'problem  torch: .*libcudart.* -> .*LD_LIBRARY_PATH',
    r'problem  torchvision: .*torchvision::nms.* -> .*pip uninstall torchv',
    r'problem  pkg_resources: .* -> pip install "setuptools<81"',
    r'problem  decord: the process crashed with status 132: bad instruction '
    r'-> pip install --force-reinstall decord',
    # Checks after the crash still run.
    r'problem  mmvidattn: it cannot be imported: .* -> ',
    r'ok       numpy: '])
def test_provoked_fault_is_named_with_its_remedy(broken, line):
    assert re.search(f'^{line}', broken.stdout, re.MULTILINE), broken.stdout


def test_problems_are_counted_and_make_the_status(broken):
    *findings, last = broken.stdout.splitlines()
    assert broken.returncode == 1
    assert all(line.startswith(('ok ', 'note ', 'problem ')) for line in
               findings)
    number = sum(line.startswith('problem ') for line in findings)
    assert last.startswith(f'{number} problems, ')


def test_commands_that_cannot_be_imported_point_to_it(tmp_path):
    (tmp_path / 'torch.py').write_text('raise ImportError("broken")')
    done = subprocess.run(
        [sys.executable, '-m', 'mmvidattn_cli', 'train', 'config.py'],
        env=dict(os.environ, PYTHONPATH=f'{tmp_path}{os.pathsep}{ROOT}'),
        text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith('`mmvidattn doctor` reports what is wrong')
    assert 'ImportError: broken' in done.stderr


def test_run_that_exceeds_its_time_limit_is_ended(tmp_path, monkeypatch):
    (tmp_path / 'numpy.py').write_text('import time; time.sleep(60)')
    monkeypatch.syspath_prepend(str(tmp_path))
    texts, = doctor.probe_in_process('quick', limit=1)
    assert texts['finding']['topic'] == 'numpy'
    assert texts['finding']['text'] == 'it took more than 1 s'


def test_output_has_no_control_sequences(monkeypatch, capsys):
    item = dict(level='note', topic='x', text='a\x1b[2J\x9b', remedy='')
    monkeypatch.setattr(
        doctor, 'collect', lambda *args: iter([dict(finding=item)]))
    with pytest.raises(SystemExit):
        doctor.main(['--quick'])
    assert 'a\\x1b[2J\\x9b\n' in capsys.readouterr().out
