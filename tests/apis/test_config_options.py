# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tests of command-line options, and of the values that depend on them."""
import re
import sys
import warnings

import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.apis import list_models, load_config
from mmvidattn.apis.bundle_file import clean_config
from mmvidattn.apis.bundle_types.registry import MODEL_NAMES, STEPS
from mmvidattn.apis.check_config import check_config


def leaves(value, key=''):
    """Return all values except containers, by dotted key."""
    items = value.items() if isinstance(value, dict) else enumerate(
        value) if isinstance(value, (list, tuple)) else None
    if items is None:
        return {key: value}
    return {k: v for name, item in items
            for k, v in leaves(item, f'{key}.{name}').items()}


NAMES = list_models(ablations=True)
FAMILIES = sorted({name.partition('_')[0] for name in NAMES})


@pytest.mark.parametrize('family', FAMILIES)
def test_every_listed_model_builds(family):
    """Build each model once, and check that bundles may have its classes."""
    listed, built = MODEL_NAMES | {*STEPS}, set()
    for name in NAMES:
        if name.partition('_')[0] == family:
            cfg = load_config(name)
            assert listed.issuperset(re.findall(
                r"'type': '(\w+)'", str(clean_config(cfg)))), name
            model = cfg.model
            # Mixup cannot be built on the meta device.
            model.pop('data_preprocessor', None)
            # Equal layers take most of the time.
            if isinstance(model.backbone.get('num_layers'), int):
                model.backbone.num_layers = 1
            if str(model) not in built:
                built.add(str(model))
                with torch.device('meta'):
                    head = MODELS.build(model).cls_head
                assert head.num_classes > 1, name


@pytest.mark.parametrize('family', FAMILIES)
def test_data_root_changes_all_paths(family):
    for name in list_models(f'{family}_*'):
        old = load_config(name)
        with warnings.catch_warnings():
            warnings.simplefilter('error', UserWarning)
            new = load_config(load_config(name), {'data_root': '/elsewhere'})
        root = old.data_root
        assert re.fullmatch(r'data/\w+', root), name
        before, after = leaves(old.to_dict()), leaves(new.to_dict())
        assert after == before | {
            key: '/elsewhere' + value[len(root):]
            for key, value in before.items()
            if isinstance(value, str) and value.startswith('data/')}, name
        # The root itself and three loaders, whose lists are relative to it.
        for split in 'train', 'val', 'test':
            dataset = new[f'{split}_dataloader'].dataset
            assert dataset.data_root == '/elsewhere'
            assert not dataset.ann_file.startswith('/')


def test_data_root_of_a_loader_takes_precedence():
    # A folder inside the old one changes paths once, one beside it none.
    cfg = load_config('linear_ff_ssv2')
    cfg.test_dataloader.dataset.data_prefix.video = 'data/sthv2b/videos'
    cfg = load_config(cfg, {
        'data_root': 'data/sthv2/small/',
        'val_dataloader.dataset.data_root': '/b'})
    assert cfg.test_dataloader.dataset.data_prefix.video == (
        'data/sthv2b/videos')
    for split, root in ('train', 'data/sthv2/small'), ('val', '/b'):
        dataset = cfg[f'{split}_dataloader'].dataset
        assert dataset.data_root == root
        assert dataset.metainfo.classes == 'data/sthv2/small/label_map.txt'


@pytest.mark.parametrize('name, key, value, least, others', [
    ('linear_ff_k400', 'num_classes', 5, 4, ()),
    ('laps_visformer_h_egtea', 'num_classes', 5, 4, ()),
    ('testra_thumos14', 'num_classes', 5, 2, ()),
    ('testra_ek100', 'num_classes', 5, 2, ('gt_action', )),
    ('vivit_l16x2_fact_encoder_epic', 'num_nouns', 9, 4, ()),
    ('testra_ek100', 'num_nouns', 9, 2, ('gt_noun', )),
    ('testra_ek100', 'num_verbs', 2, 2, ('gt_verb', )),
    *((name, key, 4, 8, ('clip_len', ))
      for name in ('vivit_l16x2_fact_encoder_epic', 'laps_rest_s_k400')
      for key in ('num_frames', 'model.backbone.num_frames'))])
def test_variable_changes_data_and_model(name, key, value, least, others):
    variable = key.rpartition('.')[2]
    before = leaves(load_config(name).to_dict())
    after = leaves(load_config(name, {key: value}).to_dict())
    old = before[f'.{variable}']
    changed = {key for key, number in before.items() if number == old
               and key.rpartition('.')[2] in (variable, *others)}
    assert len(changed) >= least
    assert {key.rpartition('.')[2] for key in changed} == {variable, *others}
    assert after == {**before, **dict.fromkeys(changed, value)}


@pytest.mark.parametrize('key', ['img_size', 'model.backbone.img_size'])
def test_img_size_changes_pipelines_and_backbone(key):
    cfg = load_config('linear_ff_ssv2', {key: 336})
    assert cfg.to_dict() == load_config('linear_ff_hr_ssv2').to_dict()
    cfg = load_config('linear_ff_ssv2', {
        key: 336, 'train_pipeline.5.size': 320,
        'test_pipeline.1.num_clips': 3})
    assert cfg.train_dataloader.dataset.pipeline[5].size == 320
    assert cfg.test_dataloader.dataset.pipeline[4].crop_size == 336
    assert cfg.test_dataloader.dataset.pipeline[1].num_clips == 3
    assert cfg.val_dataloader.dataset.pipeline[1].get('num_clips') != 3


def test_num_frames_keeps_kernels_for_longer_clips():
    cfg = load_config('dualformer_tiny_ucf101', {'num_frames': 8})
    assert cfg.test_pipeline[1].clip_len == 8
    assert cfg.model.backbone.num_frames == 32
    cfg = load_config('dualformer_tiny_ucf101',
                      {'model.backbone.num_frames': 16})
    assert cfg.model.backbone.num_frames == cfg.test_pipeline[1].clip_len


@pytest.mark.parametrize('name, key, near', [
    ('vivit_tiny_motion', 'load_form', 'load_from'),
    ('vivit_tiny_motion', 'ann_file_train', 'train_dataloader.dataset.ann_fi'),
    ('vivit_tiny_motion', 'optim_wraper.optimizer.lr',
     'optim_wrapper.optimizer.lr'),
    ('testra_ek100', 'memory.long_steps',
     'train_dataloader.dataset.long_st')])
def test_unused_option_warns_and_suggests(name, key, near):
    with pytest.warns(UserWarning, match=(
            f'option {key} has no effect: .*; did you mean {near}')):
        load_config(name, {key: 3})


def test_used_option_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        load_config('vivit_tiny_motion', {
            'model.backbone.init_cfg.type': 'Pretrained',
            'train_dataloader.dataset.indices': 4, 'randomness.seed': 1,
            'param_scheduler.0.verbose': True, 'train_cfg.val_begin': 3,
            'default_hooks.checkpoint.by_epoch': True, 'compile': True,
            'load_from': 'a.pth', 'resume': True, 'custom_hooks': [],
            'env_cfg.type': 'opencv'})


def test_modules_beside_a_config_can_be_imported(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'path', [path for path in sys.path if path])
    config = tmp_path / 'mine.py'

    def load(name, text):
        (tmp_path / f'{name}.py').write_text(text)
        config.write_text(f"custom_imports = dict(imports=['{name}'])")
        load_config(config)

    load('my_parts_beside', '')
    found = sys.modules.pop('my_parts_beside')
    assert found.__file__.startswith(str(tmp_path))
    with pytest.raises(ImportError, match=(
            f"{config}: No module named 'lost'.*{tmp_path}.*PYTHONPATH$")):
        load('beside', 'import lost')


def test_warns_of_names_for_another_number_of_classes(tmp_path):
    cfg, names = load_config('linear_ff_tiny_motion'), tmp_path / 'names.txt'
    names.write_text('run\njump\n')
    for classes in ['run', 'jump'], str(names):
        cfg.train_dataloader.dataset.metainfo = dict(classes=classes)
        with pytest.warns(UserWarning, match='names 2 classes, but .* is 8'):
            check_config(cfg)
