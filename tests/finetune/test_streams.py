# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs and features of runs on long videos."""
from pathlib import Path

import numpy as np
import pytest
import torch
from made_videos import write_gray
from mmaction.registry import MODELS
from mmengine.config import Config

from mmvidattn.apis.models import load_config
from mmvidattn.datasets.annotations.labeled_videos import LabeledVideo
from mmvidattn.datasets.video_facts import VideoFacts
from mmvidattn.finetune import FineTuneOptions, streams
from mmvidattn.finetune.plan import Plan
from mmvidattn.finetune.training import set_epochs
from mmvidattn.live import FeatureExtractor, load_live_model


@pytest.fixture
def load(tmp_path):
    """Load the config of a run on three videos with two classes."""
    def load(kind, splits=('train', 'val', 'test'), **options):
        options = FineTuneOptions(
            Path('mine.csv'), stream=True, videos=tmp_path, model=kind,
            work_dir=tmp_path, weights='default', **options)
        plan = Plan(
            options, tmp_path, 2, {name: [
                LabeledVideo(f'{name}.mp4', label, 0, 4) for label in 'ab']
                for name in splits},
            {name: [f'{name}.mp4'] for name in splits},
            ['background', 'a', 'b'],
            {f'{name}.mp4': VideoFacts(900, 30, 64, 48, 30.)
             for name in splits}, 'csv')
        plan.write_lists(tmp_path / 'data')
        cfg = streams.load_base(options)
        streams.set_config(cfg, options, plan)
        set_epochs(cfg, 30)
        return cfg

    return load


def check_images(cfg, side):
    """Check that the network fits its images."""
    logits = MODELS.build(cfg.model)(dict(
        frames=torch.zeros(1, 3, 4, side, side), elapsed=torch.ones(1, 4)))
    assert logits['action'].shape == (1, 4, 3)
    for name in 'train', 'val', 'test':
        assert dict(type='Resize', scale=(side, side), keep_ratio=False) in (
            cfg[f'{name}_dataloader'].dataset.pipeline)


def test_pixels(load, tmp_path):
    cfg = load('pixels', seed=3, lr=1e-3)
    check_images(cfg, 64)
    for name in 'train', 'val', 'test':
        dataset = cfg[f'{name}_dataloader'].dataset
        # A frame rate of 5 reads 20 frames of an event of 4 s.
        assert dataset.frame_rate == 5 and dataset.ann_file == f'{name}.csv'
        assert dataset.video_list.endswith(f'data/{name}_videos.txt')
    assert cfg.randomness.seed == 3 and cfg.optim_wrapper.optimizer.lr == 1e-3
    assert cfg.param_scheduler[0].end == 30 == cfg.train_cfg.max_epochs
    assert cfg.default_hooks.checkpoint.save_best == 'online/mAP_stream'
    # The shortest event lasts 4 s.
    assert cfg.online.events.min_duration == 2
    # Images are smaller if training is slow.
    cfg.dump(tmp_path / 'config.py')
    with pytest.MonkeyPatch.context() as patch:
        # A killed run can continue with the old file.
        patch.setattr(Config, 'pretty_text', property(lambda self: exit()))
        with pytest.raises(SystemExit):
            streams.reduce_images(tmp_path, 299)
        check_images(load_config(tmp_path / 'config.py'), 64)
    streams.reduce_images(tmp_path, 299)
    check_images(load_config(tmp_path / 'config.py'), 32)


def test_features_run_live(load, tmp_path):
    cfg = load('features')
    cfg.dump(tmp_path / 'config.py')
    model = load_live_model(tmp_path / 'config.py', None)
    assert model.rate == 4 and [*model.extractors] == ['rgb']
    train, test = (cfg[f'{name}_dataloader'].dataset
                   for name in ('train', 'test'))
    assert train.ann_file == 'train_features.txt'
    backbone = cfg.model.backbone
    assert backbone.long_memory_length == 64 == train.long_steps
    assert backbone.work_memory_length == 16 == test.work_steps


@pytest.mark.parametrize('kind', ['pixels', 'features'])
def test_without_validation_videos(load, kind):
    cfg = load(kind, splits=('train', ))
    assert cfg.val_dataloader is cfg.test_dataloader is None
    assert cfg.default_hooks.checkpoint.save_best is None
    cfg = load(kind, splits=('train', 'val'))
    assert 'val' in cfg.test_dataloader.dataset.ann_file


@pytest.fixture
def plan(tmp_path):
    """A video of two seconds for training, and one for validation."""
    for name in 'a/x.mp4', 'y.avi':
        write_gray(tmp_path / name, range(0, 256, 16), 8)
    return Plan(
        None, tmp_path, 1,
        dict(train=[LabeledVideo('a/x.mp4', 'k', .5, 1.25)]),
        dict(train=['a/x.mp4'], val=['y.avi']), ['background', 'k'],
        {'a/x.mp4': VideoFacts(16, 8, 32, 32, 2.)}, 'csv')


@pytest.fixture
def extractor():
    """Network whose feature is the mean gray level."""
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1),
                                  torch.nn.Flatten())
    return FeatureExtractor(network, input=dict(
        takes='frames', mean=[0.] * 3, std=[1.] * 3, value_range=255,
        resize=32))


def test_writes_features_targets_and_lists(plan, extractor, tmp_path):
    out = tmp_path / 'out'
    streams.write_features(plan, extractor, out)
    features = np.load(out / 'rgb/a_x.npy')
    assert features.shape == (8, 3)
    # The clip of a step ends with its last frame: frame 1 of two.
    assert features.mean(1) == pytest.approx(
        16 * (2 * np.arange(8) + 1), abs=4)
    targets = np.load(out / 'target_perframe/a_x.npy')
    assert targets[:, 1].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    assert np.load(out / 'target_perframe/y.npy')[:, 0].all()
    assert (out / 'train_features.txt').read_text() == 'a_x\n'
    # Existing features are kept.
    np.save(out / 'rgb/y.npy', np.zeros((8, 3)))
    streams.write_features(plan, extractor, out)
    assert not np.load(out / 'rgb/y.npy').any()
    plan = plan._replace(videos=dict(train=['a/x.mp4', 'a_x.mp4']))
    with pytest.raises(ValueError, match='a/x.mp4 and a_x.mp4 would have the'):
        streams.write_features(plan, extractor, tmp_path / 'out')
