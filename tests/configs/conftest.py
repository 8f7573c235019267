# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper

from mmvidattn.apis import load_config

# Narrow networks and their output channels.
FRAME_ARCHS = dict(
    Visformer=(dict(
        stem_channels=8, embed_dims=16, depths=(1, 1, 1), num_heads=2), 32),
    ResT=(dict(embed_dims=8, depths=(1, 1, 1, 1), num_heads=(1, 2, 4, 8)),
          64),
    DualFormer=(dict(
        embed_dims=8, num_layers=(1, 2, 1, 1), num_heads=(1, 1, 2, 2)), 64),
    VisionTransformerLAPS=(dict(embed_dims=32, num_layers=1, num_heads=2),
                           32))


def _make_narrow(model):
    backbone, head, width = model.backbone, model.cls_head, 32
    if backbone.type in FRAME_ARCHS:
        backbone.arch, width = FRAME_ARCHS[backbone.type]
    else:
        backbone.update(embed_dims=width, num_layers=1, num_heads=2)
    head.in_channels = width
    if 'hidden_dims' in head:
        head.hidden_dims = 16
    if 'num_heads' in head:
        head.num_heads = 2


@pytest.fixture(scope='session')
def narrow(motion_dir):
    """Load a config with a narrow model and the motion dataset."""

    def read(name, **variables):
        cfg = load_config(name, {
            key: value for key, value in variables.items()
            if value != load_config(name)[key]})
        _make_narrow(cfg.model)
        if 'teacher' in cfg.model:
            _make_narrow(cfg.model.teacher)
            cfg.model.teacher_checkpoint = None
        for split in ('train', 'val', 'test'):
            dataset = cfg[f'{split}_dataloader'].dataset
            dataset.update(
                data_root=str(motion_dir),
                data_prefix=dict(video=''),
                ann_file='train.txt' if split == 'train' else 'val.txt',
                metainfo=None,
                # Serialization runs the garbage collector, which takes longer
                # than the step.
                serialize_data=False)
        return cfg

    return read


@pytest.fixture(scope='session')
def train_once():
    """Train one step; return the model and its tensors that did not change."""

    def train(cfg, samples=(0, 1)):
        torch.manual_seed(0)
        model = MODELS.build(cfg.model)
        model.init_weights()
        optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
        dataset = DATASETS.build(cfg.train_dataloader.dataset)
        batch = pseudo_collate([dataset[i] for i in samples])
        before = copy.deepcopy(model.state_dict())
        losses = model.train().train_step(batch, optim_wrapper)
        assert losses['loss'].isfinite() and losses['loss'] > 0
        return model.eval(), {key for key, x in model.state_dict().items()
                              if torch.equal(x, before[key])}

    return train


@pytest.fixture(scope='session')
def step_once(train_once):
    """Train one step and test one; return the shape of the tested clips."""

    def step(cfg):
        model, unchanged = train_once(cfg)
        # The first step changes the classifier in every config.
        assert 'cls_head.fc_cls.weight' not in unchanged
        sample = DATASETS.build(cfg.test_dataloader.dataset)[0]
        shape = tuple(sample['inputs'].shape)
        # Two views are enough to test averaging.
        sample['inputs'] = sample['inputs'][:2]
        with torch.no_grad():
            result, = model.test_step(pseudo_collate([sample]))
        assert result.pred_score.shape == (cfg.model.cls_head.num_classes, )
        assert result.pred_score.isfinite().all()
        return shape

    return step
