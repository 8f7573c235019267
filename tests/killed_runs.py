# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Short trainings in separate processes, and exact comparison of their files.

Each training has four or more batches per epoch and a checkpoint after every
third batch, so runs resume both within an epoch and between two epochs.
"""
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from mmengine.logging import HistoryBuffer

ROOT = Path(__file__).resolve().parents[1]
COMMON = '''
train_cfg = dict(max_epochs=3, val_interval=1)
workers = dict(num_workers={workers}, persistent_workers={workers} > 0)
data = dict(data_root='{data}', metainfo=dict(classes='{data}/{classes}'))
train_dataloader = dict(
    dataset=data, batch_size=4 // {processes}, **workers)
val_dataloader = test_dataloader = dict(dataset=data, **workers)
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval=3, max_keep_ckpts=2),
    logger=dict(interval=1))
custom_hooks = [dict(type='EMAHook', momentum=0.1)]
randomness = dict(seed=3)
'''
# The runs have dropout, and draw from torch, numpy and Python.
CONFIGS = dict(
    clip='''
_base_ = '{root}/configs/linear_ff_tiny_motion.py'
model = dict(
    backbone=dict(embed_dims=24, num_layers=1, num_heads=2),
    cls_head=dict(in_channels=24, hidden_dims=24, dropout_ratio=0.5))
''' + COMMON + '''
train_dataloader['dataset'] = dict(data, pipeline=[
    dict(type='DecordInit'),
    dict(type='UniformSample', clip_len=8),
    dict(type='DecordDecode'),
    dict(type='RandomResizedCrop', area_range=(0.3, 1.0)),
    dict(type='Resize', scale=(64, 64), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
])
''',
    stream='''
_base_ = '{root}/configs/testra_tiny_synthetic.py'
model = dict(
    backbone=dict(embed_dims=16, ffn_dims=16),
    cls_head=dict(in_channels=16))
''' + COMMON,
    # mmaction2's config with a smaller model and our data.
    mmaction='''
_base_ = 'mmaction::recognition/tsn/' \\
    'tsn_imagenet-pretrained-r50_8xb32-1x1x3-100e_kinetics400-rgb.py'
model = dict(
    backbone=dict(
        depth=18, pretrained=None, num_stages=1, strides=(1, ),
        dilations=(1, ), out_indices=(0, )),
    cls_head=dict(in_channels=64, num_classes=8))
''' + COMMON + '''
pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=1, frame_interval=1, num_clips=3),
    dict(type='DecordDecode'),
    dict(type='MultiScaleCrop', input_size=32, scales=(1, 0.875, 0.75),
         random_crop=True),
    dict(type='Resize', scale=(32, 32), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCHW'),
    dict(type='PackActionInputs')
]
data['data_prefix'] = dict(video='')
train_dataloader['dataset'] = dict(
    data, pipeline=pipeline, ann_file='train.txt')
# The validation pipeline has no random steps.
val_dataloader['dataset'] = dict(data, ann_file='val.txt', pipeline=[
    pipeline[0], dict(pipeline[1], test_mode=True), pipeline[2], pipeline[4],
    *pipeline[6:]
])
''')


def write_config(path: Path, kind: str, data: object, processes: int = 1,
                 workers: int = 0) -> Path:
    """Write the config of a training that takes seconds."""
    path.write_text(CONFIGS[kind].format(
        root=ROOT, data=data, processes=processes, workers=workers,
        classes='classes.txt' if kind == 'stream' else 'label_map.txt'))
    return path


def free_port() -> int:
    """Return a port of this machine that no program uses."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        return server.getsockname()[1]


class Training:
    """Training in one or several processes, each with its own group.

    Args:
        config: Config file.
        work_dir: Folder of the checkpoints.
        processes: Number of processes. Defaults to 1.
        resume: Resume from the last checkpoint. Defaults to False.
    """

    def __init__(self, config: Path, work_dir: Path, processes: int = 1,
                 resume: bool = False) -> None:
        port = free_port()
        command = [sys.executable, ROOT / 'tools/train.py', config,
                   '--work-dir', work_dir, '--default-runtime']
        command += ['--resume'] * resume
        command += ['--launcher', 'pytorch'] * (processes > 1)
        self.processes = [subprocess.Popen(
            list(map(str, command)), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                     WORLD_SIZE=str(processes), MASTER_ADDR='127.0.0.1',
                     MASTER_PORT=str(port), OMP_NUM_THREADS='1'))
            for rank in range(processes)]

    def kill(self, number: signal.Signals, step: int,
             rng: random.Random) -> None:
        """Send a signal at a random moment of a step or of what follows."""
        before = 0.
        for line in self.processes[0].stdout:
            if 'Epoch(train)' not in line:
                continue
            step -= 1
            if not step:
                break
            before = time.monotonic()
        assert not step, 'the training ended early'
        time.sleep(rng.uniform(0, 2 * (time.monotonic() - before)
                               if before else .5))
        for process in self.processes:
            # Workers of the process are in its group.
            os.killpg(process.pid, number)

    def wait(self) -> tuple[list[int], str]:
        """Return the exit codes, and the output of the first process."""
        texts = [process.communicate(timeout=300)[0]
                 for process in self.processes]
        return [process.returncode for process in self.processes], texts[0]


def leaves(value: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Yield each value of a checkpoint by name, except times and paths."""
    if any(word in name for word in ('time', 'ckpt', 'memory', "['cfg']",
                                     'experiment_name')):
        return
    if isinstance(value, HistoryBuffer):
        value = [torch.from_numpy(x) for x in value.data]
    if isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from leaves(item, f'{name}[{key!r}]')
        yield f'{name}, length', len(value)
    elif torch.is_tensor(value):
        # Compare bits: -0 differs from 0, and a NaN equals itself.
        yield name, (value.dtype, value.shape, value.numpy().tobytes())
    else:
        yield name, (type(value), value)


def differences(one: Any, two: Any) -> list[str]:
    """List where two checkpoints differ, except in times and paths."""
    one, two = dict(leaves(one)), dict(leaves(two))
    return [name for name in {**one, **two} if name not in one
            or name not in two or one[name] != two[name]]


def compare(work_dir: Path, reference: Path) -> list[str]:
    """List how the checkpoints of two finished runs differ."""
    names = [sorted(path.name for path in folder.glob('*.pth'))
             for folder in (work_dir, reference)]
    if names[0] != names[1]:
        return [f'files {names[0]}, expected {names[1]}']
    return [f'{name}: {line}' for name in names[0] for line in differences(
        *(torch.load(folder / name, weights_only=True)
          for folder in (work_dir, reference)))]
