# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from made_videos import require_backend
from mmengine.config import Config

from mmvidattn.apis import load_config
from mmvidattn.utils.video_backend import BACKENDS, apply_video_backend


def steps_of(cfg, split):
    return cfg[f'{split}_dataloader'].dataset.pipeline


@pytest.mark.parametrize('backend', BACKENDS)
def test_key_changes_all_pipelines(backend):
    require_backend(backend)
    before = load_config('linear_ff_tiny_motion')
    assert before.video_backend == 'pyav'
    cfg = load_config('linear_ff_tiny_motion', dict(video_backend=backend))
    for split in 'train', 'val', 'test':
        old, new = steps_of(before, split), steps_of(cfg, split)
        opens, = (step for step in new if step.type.endswith('Init'))
        decodes, = (step for step in new if step.type.endswith('Decode'))
        assert (opens.type, decodes.type) == BACKENDS[backend]
        assert opens.io_backend == 'disk'
        assert len(old) == len(new)
    once = cfg.to_dict()
    apply_video_backend(cfg)
    assert cfg.to_dict() == once


def test_key_of_config_file_is_used(tmp_path):
    (tmp_path / 'mine.py').write_text(
        "video_backend = 'pyav'\ntest_pipeline = [dict(type='FixedViews', "
        "transforms=[dict(type='mmaction.PyAVInit', num_threads=3), "
        "dict(type='PyAVDecode')])]\n")
    cfg = load_config(tmp_path / 'mine.py')
    assert cfg.test_pipeline[0].transforms == [
        dict(type='VideoReaderInit', num_threads=3),
        dict(type='VideoReaderDecode')]
    cfg.video_backend = 'decord'
    apply_video_backend(cfg)
    assert cfg.test_pipeline[0].transforms == [
        dict(type='DecordInit', num_threads=3), dict(type='DecordDecode')]


def test_without_the_key_nothing_changes(tmp_path):
    """A config of mmaction2 keeps its decoder."""
    steps = [dict(type='DecordInit'),
             dict(type='DecordDecode', mode='efficient')]
    (tmp_path / 'mine.py').write_text(f'test_pipeline = {steps}\n')
    assert load_config(tmp_path / 'mine.py').test_pipeline == steps
    cfg = Config(dict(test_pipeline=copy.deepcopy(steps)))
    apply_video_backend(cfg)
    assert cfg.test_pipeline == steps


def test_rejects_unknown_backends():
    with pytest.raises(ValueError, match='video_backend must be one of pyav, '
                       "decord, got 'torchcodec'"):
        load_config('linear_ff_tiny_motion', dict(video_backend='torchcodec'))


def test_rejects_decord_modes_with_other_backends():
    cfg = Config(dict(video_backend='pyav', test_pipeline=[
        dict(type='DecordDecode', mode='efficient')]))
    with pytest.raises(ValueError, match="mode='efficient', which pyav"):
        apply_video_backend(cfg)
