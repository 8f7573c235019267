# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tiny models of MiniROAD, the causal transformer and MAT learn."""
import subprocess
import sys
from pathlib import Path
from statistics import mean

import pytest

from mmvidattn.apis import load_config
from mmvidattn.apis.runner import build_runner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp('online') / 'set'
    subprocess.run(
        [sys.executable, ROOT / 'tools/data/online/make_synthetic.py', out,
         '--train', '6', '--val', '1', '--steps', '600', '--noise', '0.25'],
        check=True)
    return out


@pytest.mark.slow
@pytest.mark.parametrize('name', ['miniroad', 'causal_transformer', 'mat'])
def test_learns_what_the_features_of_the_moment_tell(name, data, tmp_path):
    options = {
        'work_dir': str(tmp_path),
        'default_hooks.checkpoint.save_best': None,
        'train_cfg.max_epochs': 6,
        'train_cfg.val_interval': 9,
        'train_dataloader.batch_size': 8,
        'visualizer.vis_backends': [],
        'visualizer.name': tmp_path.name,
        'experiment_name': tmp_path.name,
        'log_level': 'ERROR',
    }
    for split in 'train', 'val', 'test':
        dataset = f'{split}_dataloader.dataset'
        options[f'{dataset}.data_root'] = str(data)
        options[f'{dataset}.metainfo.classes'] = f'{data}/classes.txt'
    runner = build_runner(
        load_config(f'{name}_tiny_synthetic', options), strict=False)
    runner.train()
    found = runner.test()
    now = mean(value for key, value in found.items()
               if key.startswith('online/AP_dense_now'))
    # By chance it is some 0.1.
    assert now > 0.8, found
