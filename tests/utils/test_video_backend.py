# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from mmengine.config import Config

from mmvidattn.apis import load_config
from mmvidattn.utils.video_backend import BACKENDS, apply_video_backend

NAME = 'linear_ff_tiny_motion'


def test_key_changes_all_pipelines():
    before = load_config(NAME)
    assert before.video_backend == 'pyav'
    cfg = load_config(NAME, dict(video_backend='decord'))
    for each, backend in (before, 'pyav'), (cfg, 'decord'):
        for split in 'train', 'val', 'test':
            steps = each[f'{split}_dataloader'].dataset.pipeline
            opens, = (step for step in steps if step.type.endswith('Init'))
            decodes, = (step for step in steps if step.type.endswith('Decode'))
            assert (opens.type, decodes.type) == BACKENDS[backend]
            assert opens.io_backend == 'disk'
    # The way back, and a second call.
    cfg.video_backend = 'pyav'
    for _ in range(2):
        apply_video_backend(cfg)
        assert cfg.to_dict() == before.to_dict()


def test_nested_steps_and_their_options():
    cfg = Config(dict(video_backend='pyav', test_pipeline=[dict(
        type='FixedViews', transforms=[
            dict(type='mmaction.PyAVInit', num_threads=3),
            dict(type='PyAVDecode')])]))
    apply_video_backend(cfg)
    assert cfg.test_pipeline[0].transforms == [
        dict(type='VideoReaderInit', num_threads=3),
        dict(type='VideoReaderDecode')]


def test_config_of_mmaction_keeps_its_decoder():
    steps = [dict(type='DecordInit'),
             dict(type='DecordDecode', mode='efficient')]
    cfg = Config(dict(test_pipeline=copy.deepcopy(steps)))
    apply_video_backend(cfg)
    assert cfg.test_pipeline == steps
    cfg.video_backend = 'pyav'
    with pytest.raises(ValueError, match="mode='efficient', which pyav"):
        apply_video_backend(cfg)
    cfg.video_backend = 'torchcodec'
    with pytest.raises(ValueError, match="one of pyav, decord, got 'torchco"):
        apply_video_backend(cfg)
