# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

from mmvidattn.apis import load_config


@pytest.fixture(scope='session')
def narrow(motion_dir):
    """Reads a config with its own clips and options, but a narrow model."""

    def read(name, width=32):
        cfg = load_config(name)
        cfg.model.backbone.update(
            embed_dims=width, num_layers=1, num_heads=2)
        cfg.model.cls_head.update(in_channels=width, hidden_dims=16)
        if 'num_heads' in cfg.model.cls_head:
            cfg.model.cls_head.num_heads = 2
        for split in ('train', 'val', 'test'):
            dataset = cfg[f'{split}_dataloader'].dataset
            dataset.update(
                data_root=str(motion_dir),
                data_prefix=dict(video=''),
                ann_file='train.txt' if split == 'train' else 'val.txt',
                metainfo=None)
        init_default_scope('mmaction')
        return cfg

    return read


@pytest.fixture(scope='session')
def step_once():
    """Trains a step and tests one; the shape of the tested clips."""

    def step(cfg):
        torch.manual_seed(0)
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

        sample = DATASETS.build(cfg.test_dataloader.dataset)[0]
        with torch.no_grad():
            result, = model.eval().test_step(pseudo_collate([sample]))
        assert result.pred_score.shape == (cfg.model.cls_head.num_classes, )
        assert result.pred_score.isfinite().all()
        return tuple(sample['inputs'].shape)

    return step
