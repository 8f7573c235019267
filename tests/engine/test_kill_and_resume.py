# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Trainings that are killed at random moments end bit-equal.

The environment variable ``KILLS`` sets the number of kills of each training:

    KILLS=20 python -m pytest -m slow tests/engine/test_kill_and_resume.py
"""
import os
import random
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from mmengine.config import config as mmengine_config

from mmvidattn.cli.train import main as train
from tools.data.online.make_synthetic import Recipe, make_synthetic

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get('KILLS', 3))
# Checkpoints after every third step, so that runs resume within an epoch and
# between two epochs.
COMMON = '''
here = dict(num_workers={workers}, persistent_workers={workers} > 0)
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval=3, max_keep_ckpts=2),
    logger=dict(interval=1))
custom_hooks = [dict(type='EMAHook', momentum=0.1)]
randomness = dict(seed=3)
train_cfg = dict(max_epochs=3, val_interval=1)
'''
# Both draw random numbers for samples, and have dropout.
CONFIGS = dict(
    clips=COMMON + '''
_base_ = '{root}/configs/linear_ff_tiny_motion.py'
model = dict(
    backbone=dict(embed_dims=24, num_layers=1, num_heads=2),
    cls_head=dict(in_channels=24, hidden_dims=24, dropout_ratio=0.5))
data = dict(data_root='{data}', metainfo=dict(classes='{data}/label_map.txt'))
train_dataloader = dict(batch_size=4 // {processes}, dataset=dict(pipeline=[
    dict(type='DecordInit'),
    dict(type='UniformSample', clip_len=8),
    dict(type='DecordDecode'),
    dict(type='RandomResizedCrop', area_range=(0.3, 1.0)),
    dict(type='Resize', scale=(64, 64), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')], **data), **here)
val_dataloader = dict(dataset=data, **here)
test_dataloader = val_dataloader
''',
    stream=COMMON + '''
_base_ = '{root}/configs/testra_tiny_synthetic.py'
data = dict(data_root='{data}', metainfo=dict(classes='{data}/classes.txt'))
train_dataloader = dict(batch_size=8, dataset=data, **here)
val_dataloader = dict(dataset=data, **here)
test_dataloader = dict(dataset=data)
''')


@pytest.fixture(scope='session')
def stream_dir(tmp_path_factory):
    out = tmp_path_factory.mktemp('streams') / 'set'
    make_synthetic(out, 4, 1, 0, Recipe(steps=500))
    return out


def start(config, work_dir, *options, processes=1):
    """Fork processes that train, because imports take seconds."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
    pids = []
    for rank in range(processes):
        pids.append(os.fork())
        if pids[-1]:
            continue
        code = 1
        try:
            # Data loader workers share the group of the process.
            os.setsid()
            log = os.open(f'{work_dir}.log', os.O_WRONLY | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
            # yapf would format the config of each checkpoint for a second.
            mmengine_config.FormatCode = lambda text, **kwargs: (text, True)
            # Threads of OpenMP do not survive a fork.
            torch.set_num_threads(1)
            os.environ.update(
                RANK=str(rank), LOCAL_RANK=str(rank), MASTER_PORT=str(port),
                MASTER_ADDR='127.0.0.1', WORLD_SIZE=str(processes))
            sys.argv = ['train.py', str(config), '--work-dir', str(work_dir),
                        *options]
            sys.argv += ['--launcher', 'pytorch'] * (processes > 1)
            train()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return pids


def finish(pids):
    """Return the exit codes; a negative code is the number of a signal."""
    return {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids}


def differences(one, two, name=''):
    """Name the entries of checkpoints that differ, except times and paths."""
    if any(word in name for word in ('time', 'ckpt', 'memory', 'cfg',
                                     'experiment_name')):
        return []
    if isinstance(one, dict) and isinstance(two, dict):
        if one.keys() != two.keys():
            return [f'{name}: {one.keys() ^ two.keys()}']
        return [line for key in one for line in differences(
            one[key], two[key], f'{name}.{key}')]
    if isinstance(one, (list, tuple)) and len(one) == len(two):
        return [line for i, (a, b) in enumerate(zip(one, two))
                for line in differences(a, b, f'{name}.{i}')]
    if torch.is_tensor(one):
        # Compare bits: -0 differs from 0, and a NaN equals itself.
        return [] if one.dtype == two.dtype and (
            one.numpy().tobytes() == two.numpy().tobytes()) else [name]
    return [] if one == two else [f'{name}: {one!r} and {two!r}']


def checkpoints(folder):
    return {path.name: torch.load(path, weights_only=True)
            for path in folder.glob('*.pth')}


@pytest.mark.slow
@pytest.mark.parametrize('kind, workers, processes', [
    ('clips', 0, 1), ('clips', 2, 1), ('stream', 0, 1), ('stream', 2, 1),
    ('clips', 0, 2)])
def test_killed_run_ends_bit_equal(kind, workers, processes, motion_dir,
                                   stream_dir, tmp_path):
    config = tmp_path / f'{kind}.py'
    config.write_text(CONFIGS[kind].format(
        root=ROOT, workers=workers, processes=processes,
        data=motion_dir if kind == 'clips' else stream_dir))
    run = partial(start, config, processes=processes)
    began = time.monotonic()
    assert finish(run(tmp_path / 'whole')) == {0}
    seconds = time.monotonic() - began
    whole = checkpoints(tmp_path / 'whole')
    assert any(name.startswith('best_') for name in whole) and len(whole) == 3
    rng, kills = random.Random(workers), 0
    while kills < KILLS:
        folder = tmp_path / f'run_{kills}'
        pids = run(folder)
        time.sleep(rng.uniform(0, seconds))
        for pid in pids:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                # It has just started.
                os.kill(pid, signal.SIGKILL)
        killed = finish(pids) == {-signal.SIGKILL}
        assert finish(run(folder, '--resume')) == {0}, (
            Path(f'{folder}.log').read_text()[-3000:])
        assert differences(whole, checkpoints(folder)) == []
        kills += killed
