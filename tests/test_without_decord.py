# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training, testing and prediction without decord (Linux on ARM, macOS)."""
import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules['decord'] = None
import numpy as np
import mmvidattn
# A program that imports only mmvidattn can use every package.
for name in mmvidattn.__all__:
    getattr(mmvidattn, name)
print('NAME', mmvidattn.convert.convert.__name__)
from mmvidattn.commands import main

name, data, out = sys.argv[1:]
options = ['--work-dir', out, '--cfg-options', f'data_root={data}',
           'train_cfg.max_epochs=1', 'train_dataloader.num_workers=0',
           'val_dataloader.num_workers=0', 'test_dataloader.num_workers=0',
           'train_dataloader.persistent_workers=False',
           'val_dataloader.persistent_workers=False',
           'test_dataloader.persistent_workers=False']
try:
    main(['train', name, *options, 'video_backend=decord'])
except SystemExit as error:
    print('WITHOUT', error)
try:
    mmvidattn.VideoClassifier(name, cfg_options=dict(video_backend='decord'))
except ImportError as error:
    print('WITHOUT', error)
main(['train', name, *options])
main(['test', name, f'{out}/epoch_1.pth', *options])
answer = mmvidattn.VideoClassifier(name)(f'{data}/val/000000.mp4')
print('ANSWER', answer.predictions[0].label)
assert sys.modules['decord'] is None
"""


@pytest.fixture(scope='module')
def run(motion_dir, tmp_path_factory):
    done = subprocess.run(
        [sys.executable, '-c', CODE, 'linear_ff_tiny_motion', motion_dir,
         tmp_path_factory.mktemp('run')],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_trains_tests_and_predicts(run):
    assert 'Epoch(train)' in run.stdout and 'Epoch(test)' in run.stdout
    assert 'ANSWER ' in run.stdout


def test_public_names_are_attributes(run):
    assert 'NAME convert\n' in run.stdout


def test_errors_name_the_other_backend(run):
    errors = [line for line in run.stdout.splitlines()
              if line.startswith('WITHOUT')]
    assert len(errors) == 2
    for line in errors:
        assert '--cfg-options video_backend=pyav' in line


def test_logs_the_wait_for_data(run):
    assert 'training waited for data in' in run.stdout
    assert 'a worker opened and decoded a clip in' in run.stdout
