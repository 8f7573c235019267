# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs of runs on clips."""
from pathlib import Path

import numpy as np
import pytest
from mmaction.registry import MODELS
from mmengine.config import Config
from safetensors.torch import load_file

import mmvidattn
from mmvidattn.apis.models import load_config
from mmvidattn.datasets.annotations.labeled_videos import LabeledVideo
from mmvidattn.finetune import FineTuneOptions, clips
from mmvidattn.finetune.plan import Plan
from mmvidattn.finetune.training import set_epochs


def read(tmp_path, counts=(20, 15, 5), splits=('train', 'val'), suffix='txt',
         **options):
    """Return the config of a run on videos of three classes."""
    options = FineTuneOptions(
        tmp_path / 'source', work_dir=tmp_path, **options)
    videos = [LabeledVideo(f'{i}', f'{label}')
              for label, number in enumerate(counts) for i in range(number)]
    plan = Plan(options, tmp_path / "it's é", len(videos),
                dict.fromkeys(splits, videos), {},
                [f'{label}' for label in range(len(counts))], {}, suffix)
    cfg = clips.load_base(options)
    clips.set_config(cfg, options, plan)
    set_epochs(cfg, 30)
    return cfg


@pytest.mark.parametrize('model', [
    'linear_ff_tiny_motion', 'vivit_b16x2_fact_encoder_k400',
    'laps_visformer_h_egtea'])
def test_inherits_from_any_family(tmp_path, model):
    base = load_config(model)
    cfg = read(tmp_path, model=model)
    cfg.dump(tmp_path / 'config.py')
    assert load_config(tmp_path / 'config.py').to_dict() == cfg.to_dict()
    assert cfg.model.cls_head == {**base.model.cls_head, 'num_classes': 3}
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
    assert cfg.val_evaluator == cfg.test_evaluator == dict(type='AccMetric')
    assert cfg.optim_wrapper.optimizer.type == (
        base.optim_wrapper.optimizer.type)
    scheduler, = cfg.param_scheduler
    assert scheduler.end == 30 and scheduler.warmup == 3


def test_config_does_not_depend_on_the_place_of_the_package(tmp_path):
    cfg = read(tmp_path, weights='default')
    assert str(Path(mmvidattn.__file__).parent) not in cfg.pretty_text
    (tmp_path / 'data').mkdir()
    clips.write_data(cfg, FineTuneOptions(
        tmp_path / 'source', work_dir=tmp_path, weights='default'), None)
    assert {'cls_head.fc_cls.weight'} <= {*load_file(cfg.load_from)}


@pytest.mark.parametrize('model, options, freeze, once, rank, rate', [
    # New layers learn at the full rate, for half of the batch.
    ('vivit_tiny_fact_encoder_motion', dict(freeze='spatial'), 'spatial', True,
     None, 5e-4),
    *(('vivit_tiny_frozen_motion', *row) for row in (
        ({}, 'spatial', True, None, None),
        (dict(freeze='backbone'), 'backbone', True, None, None),
        (dict(freeze=1), 1, False, None, None),
        (dict(lora=2), None, False, 2, None))),
    # Small sets with weights train few parameters.
    *(('linear_ff_tiny_motion', options, freeze, False, rank, rate)
      for options, freeze, rank, rate in (
        ({}, None, 8, 2e-3), (dict(freeze='none'), None, None, 6e-4),
        (dict(lora=2), None, 2, 2e-3), (dict(freeze=1), 1, None, 6e-4),
        (dict(layer_decay=0.5), None, None, 6e-4),
        (dict(counts=(300, 300)), None, None, 1.2e-3),
        (dict(weights=None), None, None, 2e-3),
        (dict(weights=None, counts=(200, 200)), None, None, 4e-3),
        (dict(lr=7e-3), None, 8, 7e-3),
        (dict(batch_size=2), None, 8, 5e-4)))], ids=str)
def test_trained_layers_and_learning_rate(tmp_path, model, options, freeze,
                                          once, rank, rate):
    weights = tmp_path / 'w.pth'
    cfg = read(tmp_path, model=model, **(dict(weights=weights) | options))
    assert cfg.model.get('freeze') == freeze
    assert cfg.model.get('lora') == (rank and dict(rank=rank))
    assert clips.is_frozen(cfg) == once
    if rate:
        assert cfg.optim_wrapper.optimizer.lr == pytest.approx(rate)
    assert cfg.load_from == (
        None if options.get('weights', 1) is None else str(weights))
    decay = options.get('layer_decay')
    assert decay is None or cfg.optim_wrapper.paramwise_cfg == dict(
        decay_rate=decay)


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


@pytest.mark.parametrize('balance, loss', [
    ('none', dict(type='CrossEntropyLoss')),
    # Classes of 20, 15 and 5 videos have the same sum of weights.
    ('weights', dict(type='CrossEntropyLoss',
                     class_weight=[.6667, .8889, 2.6667])),
    ('focal', dict(type='CBFocalLoss', samples_per_cls=[20, 15, 5]))])
def test_losses_balance_classes(tmp_path, balance, loss):
    cfg = read(tmp_path, balance=balance)
    assert type(MODELS.build(cfg.model).cls_head.loss_cls).__name__ == (
        loss['type'])
    assert balance == 'none' or cfg.model.cls_head.loss_cls == loss
    dataset = cfg.train_dataloader.dataset.dataset
    assert dataset.type == 'VideoSegmentDataset'


@pytest.mark.parametrize('counts, repeats', [
    ((10, 9), (1, 1)), ((40, 10), (1, 2)), ((20, 15, 5), (1, 1, 2)),
    ((7, 7), (1, 1)), ((81, 1), (1, 8))])
def test_sampler_balances_classes(tmp_path, counts, repeats):
    dataset = read(tmp_path, counts, balance='sampler').train_dataloader
    while 'oversample_thr' not in dataset:
        dataset = dataset.dataset
    assert dataset.type == 'ClassBalancedDataset'
    # The rule of mmengine.
    shares = np.array(counts) / sum(counts)
    assert tuple(np.ceil(np.sqrt(dataset.oversample_thr / shares)).clip(1)
                 ) == repeats


def test_names_the_files_that_commands_can_load(tmp_path):
    """Bundles do not import the user's modules."""
    (tmp_path / 'finetune.json').write_text('{"options": {}}')
    own = f'{tmp_path}/config.py {tmp_path}/best.pth'
    for imports, model in ((['mmvidattn'], f'{tmp_path}/bundle'),
                           (None, f'{tmp_path}/bundle'), ('numpy.linalg', own),
                           (['mmvidattn', 'numpy.linalg'], own)):
        Config(dict(model={}, custom_imports=dict(imports=imports))).dump(
            tmp_path / 'config.py')
        text = clips.describe_use(tmp_path)
        assert f'mmvidattn export {model} model.onnx' in text
        folder = f'PYTHONPATH={Path(np.__file__).parents[1]})'
        assert (folder in text) == (model == own)


def test_split_without_videos_has_no_loader(tmp_path):
    cfg = read(tmp_path, splits=('train', ), suffix='csv')
    for name in 'dataloader', 'cfg', 'evaluator':
        assert cfg[f'val_{name}'] is None and cfg[f'test_{name}'] is None
    assert cfg.train_dataloader.dataset.dataset.ann_file.endswith(
        'data/train.csv')
    assert cfg.default_hooks.checkpoint.save_best is None
    cfg = read(tmp_path, splits=('train', 'test'))
    assert cfg.val_cfg is None and cfg.test_cfg is not None
    assert cfg.test_dataloader.dataset.ann_file.endswith('data/test.txt')
