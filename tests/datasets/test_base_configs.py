# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Data pipelines of the configs, run on real videos."""
from pathlib import Path

import numpy as np
import pytest
from mmaction.registry import DATASETS

from mmvidattn.apis import load_config

BASE = Path(__file__).parents[2] / 'configs/_base_'
# Name: classes, frames, side, test views.
SETS = dict(
    motion=(8, 8, 64, 6),
    ssv2=(174, 16, 224, 6),
    kinetics400=(400, 16, 224, 12),
    kinetics600=(600, 16, 224, 12))


def load(name):
    """Load the config of a data set."""
    short = name.replace('inetics', '')
    return load_config('linear_ff_tiny_motion' if name == 'motion'
                       else f'linear_ff_{short}')


def build(cfg, split, motion_dir):
    loader = cfg[f'{split}_dataloader']
    loader.dataset.update(
        data_root=str(motion_dir),
        ann_file='train.txt',
        data_prefix=dict(video=''))
    return DATASETS.build(loader.dataset)


@pytest.mark.parametrize('name', SETS)
@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_pipeline_has_the_clip_size_of_the_recipe(motion_dir, name, split):
    _, frames, side, test_views = SETS[name]
    dataset = build(load(name), split, motion_dir)
    views = test_views if split == 'test' else 1
    for index in range(3):
        sample = dataset[index]
        assert sample['inputs'].shape == (views, 3, frames, side, side)
        assert sample['data_samples'].gt_label.item() == index
    assert dataset.test_mode == (split != 'train')


@pytest.mark.parametrize('name', SETS)
def test_views_of_a_test_sample_differ(motion_dir, name):
    # Videos must not be square, or too short for several clips.
    dataset = build(load(name), 'test', motion_dir)
    result = max(
        len({view.numpy().tobytes() for view in dataset[i]['inputs']})
        for i in range(8))
    # Clips of Kinetics span 256 frames; these videos have fewer.
    assert result == (3 if 'kinetics' in name else 6)


@pytest.mark.parametrize('name', SETS)
def test_paths_and_number_of_classes(name):
    cfg = load(name)
    folder = dict(ssv2='sthv2').get(name, name)
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        assert dataset.type == 'GuardedVideoDataset'
        assert dataset.data_root == f'data/{folder}'
        assert dataset.num_classes == SETS[name][0]
        assert dataset.metainfo.classes.startswith(f'data/{folder}/')
        part = 'train' if split == 'train' else 'val'
        assert part in dataset.ann_file
        if name != 'motion':
            assert dataset.ann_file == f'{folder}_{part}_list_videos.txt'
    assert cfg.data_root == f'data/{folder}'
    assert cfg.num_classes == SETS[name][0]


@pytest.mark.parametrize('name', SETS)
def test_flips_only_if_no_class_names_a_direction(name):
    types = [t.type for t in load(name).train_pipeline]
    assert ('Flip' in types) == name.startswith('kinetics')


def test_erases_the_same_box_in_all_frames(motion_dir):
    cfg = load('ssv2')
    kept = [t for t in cfg.train_pipeline if t.type != 'AutoAugment']
    for transform in kept:
        if transform.type == 'RandomErasing':
            transform.erase_prob = 1.
    cfg.train_dataloader.dataset.pipeline = kept
    np.random.seed(0)
    clip = build(cfg, 'train', motion_dir)[0]['inputs'][0].numpy()
    grey = (clip == 128).all(0)
    always = grey.all(0)
    assert 0.015 < always.mean() < 0.34
    rows, columns = np.nonzero(always)
    box = always[rows.min():rows.max() + 1, columns.min():columns.max() + 1]
    assert box.mean() > 0.99
