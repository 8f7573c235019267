# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.apis import load_config

TOOL = Path(__file__).resolve().parents[2] / 'tools/analysis/complexity.py'


@pytest.fixture(scope='module')
def tool():
    spec = importlib.util.spec_from_file_location('complexity_tool', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('name, options, gmacs, mparams', [
    ('ssv2', {'model.backbone.fixation': None}, 243.30, 51.712),
    ('ssv2', {}, 265.12, 52.009),
    ('h_ssv2', {}, 530.23, 52.009),
    ('hr_ssv2', {}, 573.35, 52.009),
    ('s_ssv2', {}, 132.56, 52.009),
    ('released_k400', {}, 265.12, 52.595),
])
def test_counts_as_the_released_code_does(tool, name, options, gmacs, mparams):
    cfg = load_config(f'linear_ff_{name}', options)
    cfg.model.data_preprocessor = None
    init_default_scope('mmaction')
    shape, _ = tool.view_of(cfg.test_pipeline)
    with torch.device('meta'):
        model = MODELS.build(cfg.model)
        clips = torch.empty(1, 1, 3, *shape)
    released = tool.count_as_released(model, clips)
    assert round(released.macs / 1e9, 2) == gmacs
    assert round(released.params / 1e6, 3) == mparams
    ours = tool.count_complexity(model, clips, mode='tensor', stage='head')
    assert ours.macs < released.macs and not ours.uncounted


@pytest.mark.parametrize('pipeline, shape, views', [
    ([dict(type='UniformSample', clip_len=16, num_clips=2),
      dict(type='ThreeCrop', crop_size=224)], (16, 224, 224), 6),
    ([dict(type='SampleFrames', clip_len=8, num_clips=4),
      dict(type='CenterCrop', crop_size=(64, 96))], (8, 96, 64), 4),
    ([dict(type='UniformSample', clip_len=8),
      dict(type='Resize', scale=(96, 64), keep_ratio=False)], (8, 64, 96), 1),
])
def test_reads_the_view_from_the_pipeline(tool, pipeline, shape, views):
    assert tool.view_of(pipeline) == (shape, views)


def test_asks_for_the_shape_that_a_pipeline_does_not_say(tool):
    with pytest.raises(SystemExit, match='give --shape'):
        tool.view_of([dict(type='UniformSample', clip_len=8)])


def test_runs_as_a_program(tmp_path):
    out = tmp_path / 'counts.json'
    done = subprocess.run([
        sys.executable, TOOL, 'linear_ff_tiny_motion', '--shape', '8', '64',
        '64', '--views', '3', '--cfg-options', 'model.backbone.num_layers=1',
        '--json', out
    ], capture_output=True, text=True)  # yapf: disable
    assert done.returncode == 0, done.stderr
    assert 'view 8x64x64, 3 views a video' in done.stdout
    ours, released = json.loads(out.read_text())['counts']
    assert ours['macs_per_video'] == 3 * ours['macs_per_view'] > 0
    assert ours['flops_per_view'] > 2 * ours['macs_per_view']
    assert released['macs_per_view'] > ours['macs_per_view']
