# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import numpy as np
import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

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
# Steps and names of the feature streams.
ONLINE_STEPS, ONLINE_VIDEOS = 60, ('a', 'b')


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
    """Load a config with a narrow model and the motion dataset."""

    def read(name, width=32, **variables):
        cfg = load_config(name, {
            key: value for key, value in variables.items()
            if value != load_config(name)[key]})
        _make_narrow(cfg.model, width)
        if 'teacher' in cfg.model:
            _make_narrow(cfg.model.teacher, width)
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
        init_default_scope('mmaction')
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


@pytest.fixture(scope='module')
def features_dir(tmp_path_factory):
    """Write the files that a config names, for a few short videos."""
    root = tmp_path_factory.mktemp('features')

    def write(cfg):
        # The same features for each order of the tests.
        rng = np.random.default_rng(0)
        for split in 'train', 'test':
            dataset = cfg[f'{split}_dataloader'].dataset
            folder = root / dataset.data_root
            folder.mkdir(parents=True, exist_ok=True)
            (folder / dataset.ann_file).write_text('\n'.join(ONLINE_VIDEOS))
            dims = dict(
                dict(gt_action=cfg.model.cls_head.num_classes),
                **dataset.get('feature_dims', cfg.model.backbone.in_channels))
            (folder / 'classes.txt').write_text(
                '\n'.join(map(str, range(dims['gt_action']))))
            for key, sub in dataset.data_prefix.items():
                (folder / sub).mkdir(exist_ok=True)
                for video in ONLINE_VIDEOS:
                    x = rng.standard_normal(
                        (ONLINE_STEPS, dims[key]), np.float32)
                    if key.startswith('gt'):
                        x = np.eye(dims[key], dtype=np.float32)[
                            np.arange(ONLINE_STEPS) // 9 % 4]
                    np.save(folder / sub / f'{video}.npy', x)
            if 'segment_file' in dataset:
                (folder / dataset.segment_file).write_text(''.join(
                    f'{i},{video},300,330,1,2,3\n'
                    for i, video in enumerate(ONLINE_VIDEOS)))
        return root

    return write


@pytest.fixture
def narrow_online(features_dir):

    def read(name):
        cfg = load_config(name)
        narrow = dict(embed_dims=16, num_heads=2, ffn_dims=16, proj_dims=16)
        cfg.model.backbone.update({
            name: width for name, width in narrow.items()
            if name in cfg.model.backbone})
        head = cfg.model.cls_head
        head.in_channels = 16
        if 'class_counts' in head.loss_cls:
            head.loss_cls.class_counts = [1] * head.num_classes
        root = features_dir(cfg)
        for split in 'train', 'val', 'test':
            dataset = cfg[f'{split}_dataloader'].dataset
            dataset.data_root = str(root / dataset.data_root)
            if 'metainfo' in dataset:
                dataset.metainfo.classes = str(root / dataset.metainfo.classes)
        init_default_scope('mmaction')
        return cfg

    return read
