# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

from mmvidattn.apis import list_models, load_config

VIEWS = dict(
    linear_ff_ssv2=(6, 16, 224),
    linear_ff_s_ssv2=(6, 8, 224),
    linear_ff_h_ssv2=(6, 32, 224),
    linear_ff_hr_ssv2=(6, 16, 336),
    linear_ff_paper_ssv2=(6, 16, 224),
    linear_ff_k400=(12, 16, 224),
    linear_ff_k600=(12, 16, 224),
    linear_ff_released_k400=(12, 16, 224),
    linear_ff_tiny_motion=(6, 8, 64))


def _narrow(name, motion_dir):
    """The config with its own clips and options, but a narrow model."""
    cfg = load_config(name)
    cfg.model.backbone.update(embed_dims=32, num_layers=1, num_heads=2)
    cfg.model.cls_head.update(in_channels=32, hidden_dims=16)
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.update(
            data_root=str(motion_dir),
            data_prefix=dict(video=''),
            ann_file='train.txt' if split == 'train' else 'val.txt',
            metainfo=None)
    init_default_scope('mmaction')
    return cfg


@pytest.mark.parametrize('name', list_models())
def test_trains_a_step_and_tests_a_step(name, motion_dir):
    torch.manual_seed(0)
    cfg = _narrow(name, motion_dir)
    model = MODELS.build(cfg.model)
    model.init_weights()
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)

    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    batch = pseudo_collate([dataset[0], dataset[1]])
    before = copy.deepcopy(model.state_dict())
    losses = model.train().train_step(batch, optim_wrapper)
    assert losses['loss'].isfinite()
    moved = [k for k, v in model.state_dict().items()
             if not torch.equal(v, before[k])]
    # The classifier of a fresh model moves first, in every config.
    assert 'cls_head.fc_cls.weight' in moved

    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    views, frames, side = VIEWS[name]
    sample = dataset[0]
    assert sample['inputs'].shape == (views, 3, frames, side, side)
    with torch.no_grad():
        result, = model.eval().test_step(pseudo_collate([sample]))
    assert result.pred_score.shape == (cfg.model.cls_head.num_classes, )
    assert result.pred_score.isfinite().all()


@pytest.mark.parametrize('name', list_models())
def test_can_be_dumped_and_read_again(name, tmp_path):
    cfg = load_config(name)
    cfg.dump(tmp_path / 'dumped.py')
    again = Config.fromfile(tmp_path / 'dumped.py')
    assert again.to_dict() == cfg.to_dict()


def test_released_and_paper_settings_are_what_the_headers_say():
    ssv2, k400, k600, released, paper = (
        load_config(f'linear_ff_{name}')
        for name in ('ssv2', 'k400', 'k600', 'released_k400', 'paper_ssv2'))
    for cfg in (ssv2, k400, k600):
        assert cfg.model.backbone.fixation == dict(
            mode='cooperative', inputs='qkv', shared=True)
        assert cfg.train_cfg.max_epochs == 35
    assert ssv2.model.backbone.temporal_shift.divisor == 4
    assert ssv2.model.backbone.spatial_shift == dict(mode='eight', size=1)
    for cfg in (k400, k600):
        assert cfg.model.backbone.temporal_shift == dict(
            mode='tsm', divisor=8)
        assert cfg.model.backbone.spatial_shift == dict(
            mode='cross', size=4, divisor=8)
        assert cfg.model.cls_head.num_classes == \
            cfg.model.data_preprocessor.blending.num_classes == \
            cfg.train_dataloader.dataset.num_classes
    assert not released.model.backbone.fixation.shared
    assert released.model.backbone.temporal_shift.segment_frames == 8
    assert released.param_scheduler[-1].end == released.train_cfg.max_epochs
    assert paper.optim_wrapper.optimizer.weight_decay == 4e-4
    assert paper.model.backbone.attention.offset == 0
