# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tiny models of MiniROAD and MAT learn."""
from statistics import mean

import pytest

from mmvidattn.apis import load_config
from mmvidattn.apis.build_runner import build_runner
from tools.data.online.make_synthetic import Recipe, make_synthetic


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp('online') / 'set'
    make_synthetic(out, 6, 1, 0, Recipe(steps=600, noise=0.25))
    return out


@pytest.mark.slow
@pytest.mark.parametrize('name', ['miniroad', 'mat'])
def test_learns_classes_of_current_features(name, data, tmp_path,
                                            stream_options):
    options = {
        **stream_options(data, tmp_path),
        'default_hooks.checkpoint.save_best': None,
        'train_cfg.max_epochs': 6,
        'train_cfg.val_interval': 9,
        'train_dataloader.batch_size': 8,
    }
    runner = build_runner(
        load_config(f'{name}_tiny_synthetic', options), strict=False)
    runner.train()
    result = runner.test()
    now = mean(value for key, value in result.items()
               if key.startswith('online/AP_dense_now'))
    # Chance is about 0.1.
    assert now > 0.8, result
