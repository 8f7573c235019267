# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.apis.models import load_config
from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.datasets.video_facts import VideoFacts
from mmvidattn.finetune import FineTuneOptions
from mmvidattn.finetune.config import format_config
from mmvidattn.finetune.streams.config import build_config
from mmvidattn.finetune.streams.plan import StreamPlan
from mmvidattn.live import load_live_model


@pytest.fixture
def load(tmp_path):
    """Load the config of a run on three videos with two classes."""
    def load(kind, size, splits=('train', 'val', 'test'), **options):
        plan = StreamPlan(
            tmp_path, {name: [f'{name}.mp4'] for name in splits},
            [VideoSegment('', 'train.mp4', 0, 4, dict(action=label), '')
             for label in 'ab'], ['background', 'a', 'b'],
            {f'{name}.mp4': VideoFacts(900, 30, 64, 48, 30.)
             for name in splits})
        (tmp_path / 'data').mkdir(exist_ok=True)
        plan.write_lists(tmp_path / 'data')
        path = tmp_path / 'config.py'
        path.write_text(format_config(build_config(
            kind, FineTuneOptions(
                Path('mine.csv'), work_dir=tmp_path, weights='default',
                **options), plan, 30, size), 'mmvidattn finetune'))
        return load_config(path)

    return load


def test_pixels(load):
    cfg = load('pixels', 48, seed=3, lr=1e-3)
    init_default_scope('mmaction')
    model = MODELS.build(cfg.model)
    logits = model(dict(frames=torch.zeros(1, 3, 4, 48, 48),
                        elapsed=torch.ones(1, 4)))
    assert logits['action'].shape == (1, 4, 3)
    for name in 'train', 'val', 'test':
        dataset = cfg[f'{name}_dataloader'].dataset
        assert dataset.frame_rate == 5 and dataset.ann_file == f'{name}.csv'
        assert dataset.video_list.endswith(f'data/{name}_videos.txt')
        assert dict(type='Resize', scale=(48, 48), keep_ratio=False) in (
            dataset.pipeline)
    assert cfg.randomness.seed == 3 and cfg.optim_wrapper.optimizer.lr == 1e-3
    assert cfg.param_scheduler.end == 30 and cfg.train_cfg.max_epochs == 30
    assert cfg.default_hooks.checkpoint.save_best == 'online/mAP_stream'
    # The shortest event lasts 4 s.
    assert cfg.online.events.min_duration == 2


def test_features_run_live(load, tmp_path):
    cfg = load('features', 96)
    model = load_live_model(tmp_path / 'config.py', None)
    assert model.rate == 4 and [*model.extractors] == ['rgb']
    assert cfg.train_dataloader.dataset.ann_file == 'train_features.txt'
    backbone = cfg.model.backbone
    assert backbone.long_memory_length == 64 == (
        cfg.train_dataloader.dataset.long_steps)
    assert backbone.work_memory_length == 16 == (
        cfg.test_dataloader.dataset.work_steps)


@pytest.mark.parametrize('kind', ['pixels', 'features'])
def test_without_validation_videos(load, kind):
    cfg = load(kind, 48, splits=('train', ))
    assert cfg.val_dataloader is cfg.test_dataloader is None
    assert cfg.default_hooks.checkpoint.save_best is None
    cfg = load(kind, 48, splits=('train', 'val'))
    assert 'val' in cfg.test_dataloader.dataset.ann_file
