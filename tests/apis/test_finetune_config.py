# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections import Counter
from pathlib import Path

import pytest
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.dataset import BaseDataset, ClassBalancedDataset
from mmengine.registry import init_default_scope

from mmvidattn.apis.finetune_config import (
    FineTuning,
    _threshold,
    load_base,
    write_config,
)
from mmvidattn.apis.models import load_config


def read(tmp_path, **options):
    """The config of a fine-tuning on three classes of 40 videos."""
    tuning = FineTuning(**{**dict(
        model='linear_ff_tiny_motion', root=tmp_path / 'my vidéos',
        lists=tmp_path / 'data', suffix='txt', counts=(20, 15, 5),
        splits=('train', 'val'), epochs=30), **options})
    path = tmp_path / 'config.py'
    path.write_text(write_config(tuning, 'mmvidattn finetune'), 'utf-8')
    return Config.fromfile(path)


@pytest.mark.parametrize('model', [
    'linear_ff_tiny_motion', 'linear_ff_k400', 'xvit_ssv2',
    'vivit_b16x2_fact_encoder_k400', 'laps_visformer_k400',
    'dualformer_tiny_k400', 'laps_visformer_h_egtea'])
def test_inherits_any_family(tmp_path, model):
    base = load_config(model)
    cfg = read(tmp_path, model=model)
    head = {**base.model.cls_head, 'num_classes': 3}
    assert cfg.model.cls_head == head
    assert cfg.model.backbone == base.model.backbone
    assert (cfg.model.get('data_preprocessor') or {}).get('blending') is None
    for split in 'train', 'val', 'test':
        dataset = cfg[f'{split}_dataloader'].dataset
        name = 'train' if split == 'train' else 'val'
        assert dataset == dict(
            type='VideoSegmentDataset',
            ann_file=str(tmp_path / f'data/{name}.txt'),
            data_prefix=dict(video=str(tmp_path / 'my vidéos')),
            metainfo=dict(classes=str(tmp_path / 'data/label_map.txt')),
            num_classes=3,
            pipeline=base[f'{split}_dataloader'].dataset.pipeline,
            **(dict(test_mode=True) if split != 'train' else {}))
    assert cfg.train_cfg == dict(by_epoch=True, max_epochs=30, val_interval=3)
    assert cfg.val_evaluator == cfg.test_evaluator == dict(type='AccMetric')
    assert cfg.optim_wrapper.optimizer.type == (
        base.optim_wrapper.optimizer.type)
    scheduler, = cfg.param_scheduler
    assert scheduler.end == 30 and scheduler.warmup == 3


def test_rate_follows_batch_and_start(tmp_path):
    # The motion config has 4e-3 for 16 clips.
    assert read(tmp_path).train_dataloader.batch_size == 8
    weights = tmp_path / 'w.pth'
    for rate, options in (
            (2e-3, {}), (4e-3, dict(counts=(200, 200))),
            (6e-4, dict(weights=weights)),
            (6e-4, dict(weights=weights, freeze=0)),
            (2e-3, dict(weights=weights, freeze='backbone')),
            (2e-3, dict(weights=weights, lora=4)),
            (7e-3, dict(weights=weights, lr=7e-3)),
            (5e-4, dict(batch_size=2))):
        cfg = read(tmp_path, **options)
        assert cfg.optim_wrapper.optimizer.lr == pytest.approx(rate), options
        assert cfg.load_from == (str(weights) if 'weights' in options
                                 else None)


def test_features_of_what_is_frozen_are_kept(tmp_path):
    weights, cache = tmp_path / 'w.pth', tmp_path / 'features'
    hook = dict(type='FeatureCacheHook', cache_dir=str(cache), num_variants=3)
    model = 'vivit_tiny_fact_encoder_motion'
    cfg = read(tmp_path, model=model, weights=weights, freeze='spatial',
               cache_dir=cache, num_variants=3)
    assert cfg.custom_hooks == [hook]
    assert cfg.model.type == 'FineTunedRecognizer3D'
    assert cfg.model['freeze'] == 'spatial'
    # Layers that are new learn at the whole rate, for half of the batch.
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(5e-4)
    frozen = 'vivit_tiny_frozen_motion'
    own = load_config(frozen).custom_hooks
    # What the inherited config has stays, as long as it fits.
    for options, freeze, hooks in (
            ({}, 'spatial', own), (dict(freeze='backbone'), 'backbone', own),
            (dict(freeze='backbone', cache_dir=cache, num_variants=3),
             'backbone', [hook]),
            (dict(freeze=1), 1, []), (dict(lora=2), None, [])):
        cfg = read(tmp_path, model=frozen, weights=weights, **options)
        assert cfg.model['freeze'] == freeze, options
        assert cfg.custom_hooks == hooks, options


def test_nothing_that_knows_nothing_is_frozen(tmp_path):
    with pytest.raises(ValueError, match='freezes what --weights has learned'):
        read(tmp_path, model='vivit_tiny_frozen_motion')


def test_part_of_the_model_is_trained(tmp_path):
    init_default_scope('mmaction')
    weights = tmp_path / 'w.pth'
    for options in (dict(freeze='backbone'), dict(freeze=0), dict(lora=2)):
        cfg = read(tmp_path, weights=weights, layer_decay=0.5, **options)
        model = MODELS.build(cfg.model)
        trained = [p.requires_grad for p in model.backbone.parameters()]
        assert not all(trained)
        assert any(trained) == (options != dict(freeze='backbone'))
        assert cfg.optim_wrapper.paramwise_cfg == dict(decay_rate=0.5)


@pytest.mark.parametrize('balance', ['none', 'weights', 'focal', 'sampler'])
def test_balances(tmp_path, balance):
    init_default_scope('mmaction')
    cfg = read(tmp_path, balance=balance)
    loss = MODELS.build(cfg.model).cls_head.loss_cls
    dataset = cfg.train_dataloader.dataset
    if balance == 'weights':
        # Classes of 20, 15 and 5 have the same sum of weights.
        assert [w * n for w, n in zip(loss.class_weight, (20, 15, 5))
                ] == pytest.approx([40 / 3] * 3, rel=1e-3)
    elif balance == 'focal':
        assert type(loss).__name__ == 'CBFocalLoss'
        assert loss.samples_per_cls == [20, 15, 5]
    else:
        assert type(loss).__name__ == 'CrossEntropyLoss'
        assert loss.class_weight is None
    assert (dataset.type == 'ClassBalancedDataset') == (balance == 'sampler')


@pytest.mark.parametrize('counts, repeated', [
    ((10, 9), (10, 9)), ((40, 10), (40, 20)), ((20, 15, 5), (20, 15, 10)),
    ((7, 7), (7, 7)), ((81, 1), (81, 9))])
def test_sampler_makes_classes_alike(counts, repeated):
    labels = [i for i, number in enumerate(counts) for _ in range(number)]

    class Labels(BaseDataset):

        def full_init(self):
            pass

        def __len__(self):
            return len(labels)

        def get_cat_ids(self, idx):
            return [labels[idx]]

    balanced = ClassBalancedDataset(
        Labels(lazy_init=True), _threshold(counts))
    found = Counter(labels[i] for i in balanced.repeat_indices)
    assert tuple(found.values()) == repeated


def test_without_videos_there_is_no_loader(tmp_path):
    cfg = read(tmp_path, splits=('train', ), suffix='csv')
    for name in 'dataloader', 'cfg', 'evaluator':
        assert cfg[f'val_{name}'] is None and cfg[f'test_{name}'] is None
    assert cfg.train_dataloader.dataset.ann_file.endswith('data/train.csv')
    assert cfg.default_hooks.checkpoint.save_best is None
    cfg = read(tmp_path, splits=('train', 'test'))
    assert cfg.val_cfg is None and cfg.test_cfg is not None
    assert cfg.test_dataloader.dataset.ann_file.endswith('data/test.txt')


@pytest.mark.parametrize('model, error', [
    ('testra_thumos14', 'got OnlineActionDetector'),
    ('dualformer_tiny_tl_k400', 'the config without token labels can'),
    ('vivit_l16x2_fact_encoder_epic', 'with VerbNounHead'),
    ('linear_ff_tiny_motoin', 'did you mean linear_ff_tiny_motion')])
def test_refuses_other_models(model, error):
    with pytest.raises(ValueError, match=error):
        load_base(model)


def test_names_of_files_are_not_run(tmp_path):
    root = tmp_path / "it's\r'\nimport none #"
    tuning = FineTuning('linear_ff_tiny_motion', root, tmp_path / 'l', 'txt',
                        (3, 4), ('train', ), 5)
    path = tmp_path / 'config.py'
    path.write_text(write_config(
        tuning, 'finetune a\rimport none\nimport none\x0c'), newline='')
    assert Config.fromfile(path).videos == str(root)


def test_lines_are_short(tmp_path):
    tuning = FineTuning(
        'linear_ff_tiny_motion', Path('/v'), Path('/l'), 'txt', (3, 4),
        ('train', 'val'), 5, Path('/w.pth'), lora=4, layer_decay=0.75,
        balance='sampler')
    text = write_config(tuning, 'mmvidattn finetune')
    assert max(map(len, text.splitlines())) < 80
