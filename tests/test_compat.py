# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from compat_symptoms import SYMPTOMS

from mmvidattn import compat

HERE = Path(__file__).parent


@pytest.fixture(scope='module')
def outcomes() -> dict[str, list]:
    """What each symptom raises: healed, and without its cure."""
    env = {**os.environ, 'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': '1'}
    run = subprocess.run(
        [sys.executable, HERE / 'compat_symptoms.py', compat.__file__],
        env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize('name', SYMPTOMS)
def test_cure_removes_symptom(outcomes, name):
    healed, without = outcomes[name]
    assert healed is None
    assert without is not None, 'the symptom does not show without the cure'
    assert re.search(SYMPTOMS[name].shows, without), without


def test_every_cure_has_a_symptom_and_a_reason_to_go():
    names = {cure.__name__ for cure in compat.CURES}
    assert names == {symptom.cure for symptom in SYMPTOMS.values()}
    for cure in compat.CURES:
        assert re.search(r'[Cc]an\s+go\s|Stays as long', cure.__doc__), cure


def test_second_heal_wraps_nothing_again():
    from mmaction.models.heads import BaseHead
    from mmengine.optim import AmpOptimWrapper
    compat.heal()
    once = BaseHead.__call__, AmpOptimWrapper.__init__
    compat.heal()
    assert (BaseHead.__call__, AmpOptimWrapper.__init__) == once
    assert not any(
        hasattr(method.__wrapped__, 'healed_by') for method in once)


def test_numpy_and_torch_are_left_alone():
    import torch
    assert not hasattr(np, 'in1d') or np.__version__ < '2.4'
    for module in np, torch, torch.cuda:
        assert type(module).__name__ == 'module'
    assert torch.load.__module__ == 'torch.serialization'


CONFIG = """
custom_imports = dict(imports=['mmvidattn'], allow_failed_imports=False)
_base_ = ['mmaction::_base_/default_runtime.py']
pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=4, num_clips=1),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(32, 32), keep_ratio=False),
    dict(type='ColorJitter'),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs'),
]
dataset = dict(
    type='VideoDataset', ann_file='videos.txt', data_prefix=dict(video='.'),
    pipeline=pipeline)
train_dataloader = dict(
    batch_size=2, num_workers=0, persistent_workers=False, dataset=dataset,
    sampler=dict(type='DefaultSampler', shuffle=True))
val_dataloader = dict(
    batch_size=3, num_workers=0, persistent_workers=False, dataset=dataset,
    sampler=dict(type='DefaultSampler', shuffle=False))
test_dataloader = val_dataloader
val_evaluator = test_evaluator = dict(type='AccMetric')
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=1)
val_cfg = dict(type='ValLoop', fp16=True)
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01))
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='ResNet3dSlowOnly', depth=18, pretrained=None, lateral=False,
        base_channels=4, norm_eval=False),
    cls_head=dict(type='I3DHead', num_classes=5, in_channels=32),
    data_preprocessor=dict(
        type='ActionDataPreprocessor', mean=[128] * 3, std=[64] * 3,
        format_shape='NCTHW'),
    test_cfg=dict(max_testing_views=2))
"""


def test_tools_in_the_wheel_of_mmaction_run_on_a_cpu(tmp_path):
    import mmaction
    tools = Path(mmaction.__file__).parent / '.mim' / 'tools'
    for i in range(6):
        writer = cv2.VideoWriter(
            str(tmp_path / f'{i}.mp4'), cv2.VideoWriter_fourcc(*'mp4v'), 10,
            (64, 48))
        for t in range(6):
            writer.write(np.full((48, 64, 3), 20 * i + 10 * t, np.uint8))
        writer.release()
    (tmp_path / 'videos.txt').write_text(
        ''.join(f'{i}.mp4 {i % 5}\n' for i in range(6)))
    (tmp_path / 'config.py').write_text(CONFIG)
    env = {
        **os.environ, 'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': '1',
        'PYTHONPATH': str(HERE.parent)
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command, '--work-dir', 'run'], cwd=tmp_path,
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout

    trained = run('-m', 'torch.distributed.run', '--standalone',
                  '--nproc_per_node=2', f'{tools}/train.py', 'config.py',
                  '--launcher', 'pytorch', '--amp')
    assert 'Distributed launcher: pytorch' in trained
    assert 'acc/top1' in trained
    resumed = run(f'{tools}/train.py', 'config.py', '--resume', '--amp',
                  '--cfg-options', 'train_cfg.max_epochs=2')
    assert 'resumed epoch: 1' in resumed
    tested = run(f'{tools}/test.py', 'config.py', 'run/epoch_2.pth')
    assert 'acc/top5' in tested
