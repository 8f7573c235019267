# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ctrl-C in real processes, and two runs in one work directory."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from helpers import ROOT

pytestmark = pytest.mark.slow
WORKERS = [f'{loader}_dataloader.{option}' for loader in ('train', 'val')
           for option in ('num_workers=1', 'persistent_workers=True')]


@pytest.fixture
def start(tmp_path):
    """Start a command in a process group, and wait for a line of output."""
    processes = []

    def run(marker, *words):
        log = tmp_path / f'{len(processes)}.log'
        with open(log, 'w') as file:
            process = subprocess.Popen(
                [sys.executable, '-m', 'mmvidattn', *map(str, words)],
                cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True,
                env=dict(os.environ, OMP_NUM_THREADS='1', MPLBACKEND='Agg',
                         PYTHONPATH=str(ROOT), PYTHONUNBUFFERED='1'))
        processes.append(process)
        process.text = lambda: log.read_text('utf-8')
        while not re.search(marker, process.text()):
            assert process.poll() is None, process.text()
            time.sleep(0.05)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ctrl_c(process):
    """Press Ctrl-C, which a terminal sends to the workers too."""
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 130, process.text()
    assert 'Traceback' not in process.text(), process.text()
    return process.text().splitlines()[-1]


def test_training(start, small_config, small_checkpoint, tmp_path):
    train = ['train', small_config, '--work-dir', 'run', '--cfg-options',
             'train_cfg.max_epochs=1000', *WORKERS]
    last = ctrl_c(start(r'Epoch\(train\) +\[3\]', *train))
    assert re.fullmatch(r'mmvidattn train: stopped after epoch \d+, iteration '
                        r'\d+; --resume continues', last)
    assert (tmp_path / 'run/last_checkpoint').is_file()
    # A killed run leaves its lock file, which locks nothing.
    process = start(r'Epoch\(train\)', *train, 'resume=True')
    assert 'resumed epoch: ' in process.text()
    second = start('in use by another run', *train)
    assert second.wait() == 1
    assert f'process {process.pid}, started ' in second.text()
    tested = start('acc/top1', 'test', small_config, small_checkpoint,
                   '--work-dir', 'run')
    assert tested.wait() == 0
    process.kill()
    process.wait()
    assert (tmp_path / 'run/.lock').is_file()
    ctrl_c(start(r'Epoch\(train\)', *train, 'resume=True'))


def test_feature_extraction(start, small_config, video, tmp_path):
    (tmp_path / 'many').mkdir()
    for i in range(2000):
        (tmp_path / f'many/{i:04}.mp4').symlink_to(video)
    command = ['extract-features', 'many', 'features', small_config]
    process = start('features per step', *command)
    while len([*tmp_path.glob('features/*.npy')]) < 5:
        time.sleep(0.05)
    last = ctrl_c(process)
    assert re.fullmatch(r'mmvidattn extract-features: stopped after \d+ of '
                        '2000 videos; the same command continues', last)
    assert not [*tmp_path.glob('features/*.part')]
