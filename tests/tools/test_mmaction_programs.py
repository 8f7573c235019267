# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""mmaction2's programs with our import only."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mmaction
import torch

ROOT = Path(__file__).resolve().parents[2]
UPSTREAM = Path(mmaction.__file__).parent / '.mim/tools'


# A user's config with classes of mmaction2 and one backbone of mmvidattn.
CONFIG = '''
custom_imports = dict(imports=['mmvidattn'], allow_failed_imports=False)
default_scope = 'mmaction'
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='LinearVideoTransformer', num_frames=4, patch_size=16,
        patch_stride=16, patch_padding=0, embed_dims=16, num_layers=1,
        num_heads=2),
    cls_head=dict(type='I3DHead', num_classes=8, in_channels=16,
                  average_clips='prob'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor', mean=[127.5] * 3, std=[127.5] * 3,
        format_shape='NCTHW'))
pipeline = [
    dict(type='DecordInit'),
    dict(type='UniformSample', clip_len=4, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(32, 32), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
loader = dict(
    batch_size=4, num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='VideoDataset', ann_file='val.txt', test_mode=True,
                 data_root={motion!r}, data_prefix=dict(video={motion!r}),
                 pipeline=pipeline))
train_dataloader = dict(loader, dataset=dict(
    loader['dataset'], ann_file='train.txt', test_mode=False))
val_dataloader = test_dataloader = loader
val_evaluator = test_evaluator = dict(type='AccMetric')
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01))
'''


# Run the tools in one process, because the imports take seconds.
SCRIPT = '''
import runpy, sys
for tool, *args in (('train.py', '--seed', '0', '--work-dir', 'work'),
                    ('test.py', 'work/epoch_1.pth', '--work-dir', 'work')):
    sys.argv = [tool, 'mine.py', *args]
    runpy.run_path('UPSTREAM/' + tool, run_name='__main__')
sys.argv = ['', 'UPSTREAM/analysis_tools/get_flops.py', 'mine.py',
            '--shape', '1', '3', '4', '32', '32']
'''


def test_config_of_a_user_needs_only_our_import(motion_dir, tmp_path):
    (tmp_path / 'mine.py').write_text(
        CONFIG.replace('{motion!r}', repr(str(motion_dir))))
    page = (ROOT / 'docs/tutorials/from_mmaction2.md').read_text('utf-8')
    line, = re.findall("python -c '(import mmvidattn, .*)'", page)
    done = subprocess.run(
        [sys.executable, '-c',
         SCRIPT.replace('UPSTREAM', str(UPSTREAM)) + line],
        cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert 'Params:' in done.stdout
    val, test = (json.loads(path.read_text().splitlines()[-1])
                 for path in (*tmp_path.glob('work/*/vis_data/scalars.json'),
                              *tmp_path.glob('work/*/*.json'))
                 if 'acc/top1' in path.read_text())
    for key in ('acc/top1', 'acc/top5', 'acc/mean1'):
        assert val[key] == test[key]
    assert torch.load(tmp_path / 'work/epoch_1.pth')['meta']['iter'] == 4
