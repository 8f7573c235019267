# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

from mmvidattn.apis import load_config

# Narrow networks of the transformers of frames, and their channels.
FRAME_ARCHS = dict(
    Visformer=(dict(
        stem_channels=8, embed_dims=16, depths=(1, 1, 1), num_heads=2), 32),
    ResT=(dict(embed_dims=8, depths=(1, 1, 1, 1), num_heads=(1, 2, 4, 8)),
          64),
    DualFormer=(dict(
        embed_dims=8, num_layers=(1, 2, 1, 1), num_heads=(1, 1, 2, 2)), 64),
    VisionTransformerLAPS=(dict(embed_dims=32, num_layers=1, num_heads=2),
                           32))


def _make_narrow(model, width):
    backbone, head = model.backbone, model.cls_head
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
    """Reads a config with its own clips and options, but a narrow model."""

    def read(name, width=32):
        cfg = load_config(name)
        _make_narrow(cfg.model, width)
        if 'teacher' in cfg.model:
            _make_narrow(cfg.model.teacher, width)
            cfg.model.teacher_checkpoint = None
        if 'label_store' in cfg.model:
            cfg.model.label_store = None
        for split in ('train', 'val', 'test'):
            dataset = cfg[f'{split}_dataloader'].dataset
            dataset.update(
                data_root=str(motion_dir),
                data_prefix=dict(video=''),
                ann_file='train.txt' if split == 'train' else 'val.txt',
                metainfo=None,
                # That collects garbage, which takes longer than the step.
                serialize_data=False)
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
        shape = tuple(sample['inputs'].shape)
        # Two views are as good as twelve to average, and take less time.
        sample['inputs'] = sample['inputs'][:2]
        with torch.no_grad():
            result, = model.eval().test_step(pseudo_collate([sample]))
        assert result.pred_score.shape == (cfg.model.cls_head.num_classes, )
        assert result.pred_score.isfinite().all()
        return shape

    return step
