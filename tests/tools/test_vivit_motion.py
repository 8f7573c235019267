# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Configs of the models, and changes to the backbone.
MODELS = dict(
    joint=('vivit_tiny_motion', {}),
    fact_encoder=('vivit_tiny_fact_encoder_motion', {}),
    fact_attention=('vivit_tiny_motion', dict(model='fact_attention')),
    fact_dot=('vivit_tiny_motion', dict(model='fact_dot')))
CONFIG = '''
_base_ = ['{root}/configs/{config}.py']
motion = dict(
    data_root='{motion}',
    metainfo=dict(classes='{motion}/label_map.txt'))
model = dict(backbone={changes})
train_dataloader = dict(dataset=motion)
val_dataloader = dict(dataset=motion)
test_dataloader = dict(dataset=motion)
'''
# The same checkpoint with twice the frames, which are higher than wide.
LARGER = '''
_base_ = ['small.py']
model = dict(backbone=dict(num_frames=16, img_size=(96, 64)))
pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='UniformSample', clip_len=16, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(64, 96), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_dataloader = dict(dataset=dict(pipeline=pipeline))
'''


@pytest.fixture(scope='module')
def full_motion_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp('motion')
    subprocess.run([sys.executable,
                    ROOT / 'tools/data/motion/make_motion.py', path],
                   check=True)
    return path


def _top1(run_tool, config, checkpoint, folder):
    done = run_tool('test.py', config, checkpoint, '--work-dir', folder,
                    cwd=config.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    path, = folder.glob('*/*.json')
    return json.loads(path.read_text())['acc/top1']


@pytest.mark.slow
@pytest.mark.parametrize('name', MODELS)
def test_learns_the_motion_set_and_accepts_larger_clips(
        run_tool, tmp_path, full_motion_dir, name):
    small, larger = tmp_path / 'small.py', tmp_path / 'larger.py'
    config, changes = MODELS[name]
    small.write_text(
        CONFIG.format(root=ROOT, motion=full_motion_dir, config=config,
                      changes=changes))
    larger.write_text(LARGER)
    done = run_tool('train.py', small, '--work-dir', tmp_path / 'work',
                    cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    checkpoint, = (tmp_path / 'work').glob('best_*.pth')
    assert _top1(run_tool, small, checkpoint, tmp_path / 'same') >= 0.9
    # Chance is 12.5 %.
    assert _top1(run_tool, larger, checkpoint, tmp_path / 'larger') > 0.3
