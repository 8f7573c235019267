# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Data pipelines of the configs, run on real videos."""
from pathlib import Path

import numpy as np
import pytest
from mmaction.registry import DATASETS

from mmvidattn.apis import load_config

BASE = Path(__file__).parents[2] / 'configs/_base_'
# Name: classes, frames, side, test views, different views of short videos
# (clips of Kinetics span 256 frames).
SETS = dict(
    motion=(8, 8, 64, 6, 6),
    ssv2=(174, 16, 224, 6, 6),
    kinetics400=(400, 16, 224, 12, 3))
CLASSES = {name: row[0] for name, row in SETS.items()} | dict(kinetics600=600)


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
    _, frames, side, test_views, different = SETS[name]
    dataset = build(load(name), split, motion_dir)
    views = test_views if split == 'test' else 1
    sample = dataset[2]
    assert sample['inputs'].shape == (views, 3, frames, side, side)
    assert sample['data_samples'].gt_label.item() == 2
    assert dataset.test_mode == (split != 'train')
    if split == 'test':
        assert len({view.numpy().tobytes() for view in sample['inputs']}
                   ) == different


def test_kinetics600_has_the_pipelines_of_kinetics400():
    one, other = load('kinetics400'), load('kinetics600')
    for split in 'train', 'val', 'test':
        assert (one[f'{split}_dataloader'].dataset.pipeline
                == other[f'{split}_dataloader'].dataset.pipeline)


@pytest.mark.parametrize('name', CLASSES)
def test_paths_and_number_of_classes(name):
    cfg = load(name)
    folder = dict(ssv2='sthv2').get(name, name)
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        assert dataset.type == 'CheckedVideoDataset'
        assert dataset.data_root == f'data/{folder}'
        assert dataset.num_classes == CLASSES[name]
        assert dataset.metainfo.classes.startswith(f'data/{folder}/')
        part = 'train' if split == 'train' else 'val'
        assert part in dataset.ann_file
        if name != 'motion':
            assert dataset.ann_file == f'{folder}_{part}_list_videos.txt'
    assert cfg.data_root == f'data/{folder}'
    assert cfg.num_classes == CLASSES[name]


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
