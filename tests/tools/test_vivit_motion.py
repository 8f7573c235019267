# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Each model of ViViT learns the motion set."""
import json

import pytest

pytestmark = pytest.mark.slow
# Config of each model, and changes to the backbone.
MODELS = dict(
    joint=('vivit_tiny_motion', []),
    fact_encoder=('vivit_tiny_fact_encoder_motion', []),
    fact_attention=('vivit_tiny_motion',
                    ['model.backbone.model=fact_attention']),
    fact_dot=('vivit_tiny_motion', ['model.backbone.model=fact_dot']))


@pytest.fixture(scope='module')
def data(run_main, tmp_path_factory):
    path = tmp_path_factory.mktemp('motion') / 'set'
    run_main('data/motion/make_motion.py', path)
    return path


@pytest.mark.parametrize('name', MODELS)
def test_learns_the_motion_set(run_main, tmp_path, data, name):
    config, changes = MODELS[name]
    options = '--cfg-options', f'data_root={data}', *changes
    run_main('train', config, '--work-dir', tmp_path / 'work', *options)
    checkpoint, = (tmp_path / 'work').glob('best_*.pth')
    run_main('test', config, checkpoint, '--work-dir', tmp_path / 'test',
             *options)
    path, = (tmp_path / 'test').glob('*/*.json')
    assert json.loads(path.read_text())['acc/top1'] >= 0.9
