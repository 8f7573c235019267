# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from made_videos import require_backend
from mmengine.config import Config

from mmvidattn.apis import load_config
from mmvidattn.utils.video_backend import apply_video_backend
from mmvidattn.utils.video_readers import why_no_backend

NAMES = dict(
    decord=('DecordInit', 'DecordDecode'),
    torchcodec=('TorchCodecInit', 'TorchCodecDecode'),
    pyav=('VideoReaderInit', 'VideoReaderDecode'),
    opencv=('VideoReaderInit', 'VideoReaderDecode'))


def steps_of(cfg, split):
    return cfg[f'{split}_dataloader'].dataset.pipeline


@pytest.mark.parametrize('backend', NAMES)
def test_key_changes_all_pipelines(backend):
    require_backend(backend)
    before = load_config('linear_ff_tiny_motion')
    cfg = load_config('linear_ff_tiny_motion', dict(video_backend=backend))
    for split in 'train', 'val', 'test':
        old, new = steps_of(before, split), steps_of(cfg, split)
        opens, = (step for step in new if step.type.endswith('Init'))
        decodes, = (step for step in new if step.type.endswith('Decode'))
        assert (opens.type, decodes.type) == NAMES[backend]
        assert opens.io_backend == 'disk'
        assert opens.get('backend', backend) == backend
        assert len(old) == len(new)
    once = cfg.to_dict()
    apply_video_backend(cfg)
    assert cfg.to_dict() == once


def test_options_reach_the_opening_step():
    require_backend('torchcodec')
    cfg = load_config('linear_ff_tiny_motion', {
        'video_backend.type': 'torchcodec', 'video_backend.num_threads': 2,
        'video_backend.seek_mode': 'approximate'})
    assert steps_of(cfg, 'train')[0] == dict(
        type='TorchCodecInit', io_backend='disk', num_threads=2,
        seek_mode='approximate')


def test_key_of_config_file_is_used(tmp_path):
    (tmp_path / 'mine.py').write_text(
        "video_backend = 'opencv'\ntest_pipeline = [dict(type='FixedViews', "
        "transforms=[dict(type='mmaction.PyAVInit', num_threads=3), "
        "dict(type='PyAVDecode')])]\n")
    cfg = load_config(tmp_path / 'mine.py')
    assert cfg.test_pipeline[0].transforms == [
        dict(type='VideoReaderInit', backend='opencv', num_threads=3),
        dict(type='VideoReaderDecode')]
    cfg.video_backend = 'decord'
    apply_video_backend(cfg)
    assert cfg.test_pipeline[0].transforms == [
        dict(type='DecordInit', num_threads=3), dict(type='DecordDecode')]


def test_without_the_key_nothing_changes():
    steps = [dict(type='PyAVInit'), dict(type='PyAVDecode', mode='efficient')]
    cfg = Config(dict(test_pipeline=copy.deepcopy(steps)))
    apply_video_backend(cfg)
    assert cfg.test_pipeline == steps


def test_variable_is_used_without_key(monkeypatch):
    monkeypatch.setenv('MMVIDATTN_VIDEO_BACKEND', 'opencv')
    cfg = load_config('linear_ff_tiny_motion')
    assert steps_of(cfg, 'val')[0].backend == 'opencv'
    if not why_no_backend('decord'):
        cfg = load_config('linear_ff_tiny_motion',
                          dict(video_backend='decord'))
        assert steps_of(cfg, 'val')[0].type == 'DecordInit'


@pytest.mark.parametrize('backend, message', [
    ('ffms', 'video_backend must be one of decord, torchcodec, pyav, opencv, '
             "got 'ffms'"),
    (dict(type='opencv', mode='fast'), 'opencv lacks the option mode')])
def test_rejects_unknown_backends_and_options(backend, message):
    with pytest.raises(ValueError, match=message):
        load_config('linear_ff_tiny_motion', dict(video_backend=backend))


def test_rejects_decord_modes_with_other_backends():
    cfg = Config(dict(video_backend='opencv', test_pipeline=[
        dict(type='DecordDecode', mode='efficient')]))
    with pytest.raises(ValueError, match="mode='efficient', which opencv"):
        apply_video_backend(cfg)
