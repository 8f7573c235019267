# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from mmengine.config import Config

from mmvidattn.apis import load_config
from mmvidattn.utils.video_backend import BACKENDS, apply_video_backend

NAME = 'linear_ff_tiny_motion'


def test_key_changes_all_pipelines():
    before = load_config(NAME)
    cfg = load_config(NAME, dict(video_backend='decord'))
    for each, backend in (before, 'pyav'), (cfg, 'decord'):
        assert each.video_backend == backend
        for split in 'train', 'val', 'test':
            opens, decodes = (
                step for step in each[f'{split}_dataloader'].dataset.pipeline
                if step.type.endswith(('Init', 'Decode')))
            assert (opens.type, decodes.type) == BACKENDS[backend]
            assert opens.io_backend == 'disk'
    # The way back, and a second call.
    cfg.video_backend = 'pyav'
    for _ in range(2):
        apply_video_backend(cfg)
        assert cfg.to_dict() == before.to_dict()


def test_steps_of_mmaction():
    steps = [dict(type='DecordInit'), dict(type='FixedViews', transforms=[
        dict(type='mmaction.PyAVInit', num_threads=3),
        dict(type='PyAVDecode')])]
    cfg = Config(dict(test_pipeline=copy.deepcopy(steps)))
    # Without the key, mmaction2 decodes.
    apply_video_backend(cfg)
    assert cfg.test_pipeline == steps
    cfg.video_backend = 'pyav'
    apply_video_backend(cfg)
    assert cfg.test_pipeline == [
        dict(type='VideoReaderInit'), dict(type='FixedViews', transforms=[
            dict(type='VideoReaderInit', num_threads=3),
            dict(type='VideoReaderDecode')])]
    # decord's other step stays.
    cfg = Config(dict(video_backend='decord', steps=[
        dict(type='DecordSegmentInit')]))
    apply_video_backend(cfg)
    assert cfg.steps == [dict(type='DecordSegmentInit')]


@pytest.mark.parametrize('backend, message', [
    ('pyav', "mode='efficient', which pyav"),
    ('torchcodec', "one of pyav, decord, got 'torchcodec'")])
def test_refused(backend, message):
    with pytest.raises(ValueError, match=message):
        apply_video_backend(Config(dict(video_backend=backend, steps=[
            dict(type='DecordDecode', mode='efficient')])))
