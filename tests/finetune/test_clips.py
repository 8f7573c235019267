# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs of runs on clips."""
from collections import Counter
from pathlib import Path

import pytest
from mmaction.registry import MODELS
from mmengine.dataset import BaseDataset, ClassBalancedDataset
from mmengine.registry import init_default_scope
from safetensors.torch import load_file

import mmvidattn
from mmvidattn.apis.models import load_config
from mmvidattn.datasets.annotations.labeled_videos import LabeledVideo
from mmvidattn.finetune import FineTuneOptions, clips
from mmvidattn.finetune.plan import Plan
from mmvidattn.finetune.training import set_epochs


def read(tmp_path, counts=(20, 15, 5), splits=('train', 'val'), start=0.,
         epochs=30, **options):
    """Return the config of a run on videos of three classes."""
    options = FineTuneOptions(
        tmp_path / 'source', work_dir=tmp_path, **options)
    videos = [LabeledVideo(f'{i}', f'{label}', start)
              for label, number in enumerate(counts) for i in range(number)]
    plan = Plan(options, tmp_path / "it's é", len(videos),
                dict.fromkeys(splits, videos), {},
                [f'{label}' for label in range(len(counts))], {})
    cfg = clips.load_base(options)
    clips.set_config(cfg, options, plan)
    set_epochs(cfg, epochs)
    return cfg


@pytest.mark.parametrize('model', [
    'linear_ff_tiny_motion', 'vivit_b16x2_fact_encoder_k400',
    'laps_visformer_h_egtea'])
def test_inherits_from_any_family(tmp_path, model):
    base = load_config(model)
    cfg = read(tmp_path, model=model)
    cfg.dump(tmp_path / 'config.py')
    assert load_config(tmp_path / 'config.py').to_dict() == cfg.to_dict()
    head = {**base.model.cls_head, 'num_classes': 3, 'topk': 1}
    assert cfg.model.cls_head == head
    assert cfg.model.backbone == base.model.backbone
    assert not {'num_classes', 'data_root', 'train_pipeline'} & {*cfg}
    assert (cfg.model.get('data_preprocessor') or {}).get('blending') is None
    for split in 'train', 'val', 'test':
        dataset = cfg[f'{split}_dataloader'].dataset
        if split == 'train':
            # 40 clips in batches of up to 8, until there are 20 steps.
            assert dataset.type == 'RepeatDataset'
            assert 20 <= dataset.times * 40 / (
                cfg.train_dataloader.batch_size) < 25
            dataset = dataset.dataset
        name = 'train' if split == 'train' else 'val'
        # A small validation set gets the views of the test.
        views = 'train' if split == 'train' else 'test'
        assert dataset == dict(
            type='VideoSegmentDataset',
            ann_file=str(tmp_path / f'data/{name}.txt'),
            data_prefix=dict(video=str(tmp_path / "it's é")),
            metainfo=dict(classes=str(tmp_path / 'data/classes.txt')),
            num_classes=3,
            pipeline=base[f'{views}_dataloader'].dataset.pipeline,
            **(dict(test_mode=True) if split != 'train' else {}))
    assert cfg.train_cfg == dict(by_epoch=True, max_epochs=30, val_interval=3)
    # Top-5 is omitted for three classes.
    assert cfg.val_evaluator == cfg.test_evaluator == dict(
        type='AccMetric',
        metric_options=dict(top_k_accuracy=dict(topk=1)))
    assert cfg.optim_wrapper.optimizer.type == (
        base.optim_wrapper.optimizer.type)
    scheduler, = cfg.param_scheduler
    assert scheduler.end == 30 and scheduler.warmup == 3


def test_learning_rate_depends_on_batch_and_weights(tmp_path):
    # The motion config has 4e-3 for 16 clips.
    assert read(tmp_path).train_dataloader.batch_size == 8
    weights = tmp_path / 'w.pth'
    for rate, options in (
            (2e-3, {}), (4e-3, dict(counts=(200, 200))),
            (6e-4, dict(weights=weights, freeze='none')),
            (2e-3, dict(weights=weights)),
            (6e-4, dict(weights=weights, freeze=0)),
            (2e-3, dict(weights=weights, freeze='backbone')),
            (2e-3, dict(weights=weights, lora=4)),
            (7e-3, dict(weights=weights, lr=7e-3)),
            (5e-4, dict(batch_size=2))):
        cfg = read(tmp_path, **options)
        assert cfg.optim_wrapper.optimizer.lr == pytest.approx(rate), options
        assert cfg.load_from == (str(weights) if 'weights' in options
                                 else None)
    # The config does not depend on the place of the package.
    cfg = read(tmp_path, weights='default')
    assert str(Path(mmvidattn.__file__).parent) not in cfg.pretty_text
    (tmp_path / 'data').mkdir()
    clips.write_data(cfg, FineTuneOptions(
        tmp_path / 'source', work_dir=tmp_path, weights='default'), None)
    assert {'cls_head.fc_cls.weight'} <= {*load_file(cfg.load_from)}


def test_trains_on_features_of_frozen_part(tmp_path):
    weights = tmp_path / 'w.pth'
    cfg = read(tmp_path, model='vivit_tiny_fact_encoder_motion',
               weights=weights, freeze='spatial')
    assert cfg.model.type == 'FineTunedRecognizer3D'
    assert cfg.model['freeze'] == 'spatial'
    # New layers learn at the full rate, for half of the batch.
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(5e-4)
    frozen = 'vivit_tiny_frozen_motion'
    for options, freeze, once in (
            ({}, 'spatial', True), (dict(freeze='backbone'), 'backbone', True),
            (dict(freeze=1), 1, False), (dict(lora=2), None, False)):
        cfg = read(tmp_path, model=frozen, weights=weights, **options)
        assert cfg.model['freeze'] == freeze, options
        assert clips.is_frozen(cfg) == once


@pytest.mark.parametrize('options, freeze, rank', [
    ({}, None, 8), (dict(freeze='none'), None, None),
    (dict(lora=2), None, 2), (dict(layer_decay=0.5), None, None),
    (dict(counts=(300, 300)), None, None), (dict(weights=None), None, None),
    (dict(freeze=1), 1, None)], ids=str)
def test_small_set_with_weights_trains_few_parameters(tmp_path, options,
                                                      freeze, rank):
    cfg = read(tmp_path, **(dict(weights=tmp_path / 'w.pth') | options))
    assert cfg.model.get('freeze') == freeze
    assert cfg.model.get('lora') == (rank and dict(rank=rank))


@pytest.mark.parametrize('number, best, views, stops', [
    (6, None, True, True), (50, 'acc/top1', True, True),
    (201, 'acc/top1', False, False)])
def test_validation_depends_on_its_size(tmp_path, number, best, views, stops):
    # The videos of both splits are the same here.
    cfg = read(tmp_path, counts=(number * 3, ) if number > 200 else
               (number - number // 2, number // 2))
    base = load_config('linear_ff_tiny_motion')
    hooks, loader = cfg.default_hooks, cfg.val_dataloader
    assert hooks.checkpoint.save_best == best
    assert hooks.get('early_stop') == (dict(
        type='PatientStoppingHook', monitor='acc/top1', min_delta=1e-4,
        patience=3) if stops else None)
    assert loader.dataset.pipeline == base[
        'test_pipeline' if views else 'val_pipeline']
    assert loader.batch_size == base[
        f'{"test" if views else "val"}_dataloader'].batch_size


@pytest.mark.parametrize('balance', ['none', 'weights', 'focal', 'sampler'])
def test_balance_methods(tmp_path, balance):
    init_default_scope('mmaction')
    cfg = read(tmp_path, balance=balance)
    loss = MODELS.build(cfg.model).cls_head.loss_cls
    dataset = cfg.train_dataloader.dataset
    if balance == 'weights':
        # Classes of 20, 15 and 5 videos have the same sum of weights.
        assert [w * n for w, n in zip(loss.class_weight, (20, 15, 5))
                ] == pytest.approx([40 / 3] * 3, rel=1e-3)
    elif balance == 'focal':
        assert type(loss).__name__ == 'CBFocalLoss'
        assert loss.samples_per_cls == [20, 15, 5]
    else:
        assert type(loss).__name__ == 'CrossEntropyLoss'
        assert loss.class_weight is None
    assert dataset.type == 'RepeatDataset'
    assert (dataset.dataset.type == 'ClassBalancedDataset') == (
        balance == 'sampler')


@pytest.mark.parametrize('counts, repeated', [
    ((10, 9), (10, 9)), ((40, 10), (40, 20)), ((20, 15, 5), (20, 15, 10)),
    ((7, 7), (7, 7)), ((81, 1), (81, 8))])
def test_sampler_balances_classes(tmp_path, counts, repeated):
    labels = [i for i, number in enumerate(counts) for _ in range(number)]
    cfg = read(tmp_path, counts, balance='sampler').train_dataloader.dataset
    while 'oversample_thr' not in cfg:
        cfg = cfg.dataset

    class Labels(BaseDataset):

        def full_init(self):
            pass

        def __len__(self):
            return len(labels)

        def get_cat_ids(self, idx):
            return [labels[idx]]

    balanced = ClassBalancedDataset(
        Labels(lazy_init=True), cfg.oversample_thr)
    result = Counter(labels[i] for i in balanced.repeat_indices)
    assert tuple(result.values()) == repeated


def test_split_without_videos_has_no_loader(tmp_path):
    cfg = read(tmp_path, splits=('train', ), start=1.)
    for name in 'dataloader', 'cfg', 'evaluator':
        assert cfg[f'val_{name}'] is None and cfg[f'test_{name}'] is None
    assert cfg.train_dataloader.dataset.dataset.ann_file.endswith(
        'data/train.csv')
    assert cfg.default_hooks.checkpoint.save_best is None
    cfg = read(tmp_path, splits=('train', 'test'))
    assert cfg.val_cfg is None and cfg.test_cfg is not None
    assert cfg.test_dataloader.dataset.ann_file.endswith('data/test.txt')
