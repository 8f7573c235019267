# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import DATASETS, TRANSFORMS
from mmcv.transforms import BaseTransform
from mmengine.registry import init_default_scope

from mmvidattn.datasets.feature_cache_dataset import (
    FeatureCacheDataset,
    feature_caches_of,
    with_feature_cache,
)
from mmvidattn.utils.feature_cache import FeatureWriter

PIPELINE = [
    dict(type='DecordInit'),
    dict(type='UniformSample', clip_len=2, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(16, 16), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')]


@TRANSFORMS.register_module()
class RelabelForTest(BaseTransform):

    def transform(self, results):
        results['label'] += 1
        return results


def config(root, pipeline=PIPELINE, **options):
    init_default_scope('mmaction')
    return dict(type='VideoDataset', data_root=str(root),
                ann_file='val.txt', pipeline=pipeline, **options)


def build(root, tmp_path, *args, **options):
    dataset = DATASETS.build(with_feature_cache(config(root, *args,
                                                       **options)))
    dataset.open_cache(tmp_path, {}, None)
    return dataset


def test_loads_cached_features_instead_of_frames(motion_dir, tmp_path):
    dataset = build(motion_dir, tmp_path, multi_class=True, num_classes=8)
    frames = dataset[1]
    assert frames['inputs'].shape == (1, 3, 2, 16, 16)
    sample = frames['data_samples']
    assert sample.clips_shape == frames['inputs'].shape
    FeatureWriter(tmp_path).write(sample.feature_file, torch.ones(1, 5))
    result = dataset[1]
    assert torch.equal(result['data_samples'].frozen_features,
                       torch.ones(1, 5))
    assert 'feature_file' not in result['data_samples']
    assert torch.equal(result['data_samples'].gt_label, sample.gt_label)
    # The same axes, so that mmengine can batch both.
    assert result['inputs'].shape == (1, 1, 1, 1, 1)
    assert len(dataset) == 8 and not dataset.test_mode


def test_wraps_datasets_in_wrappers(motion_dir):
    inner = config(motion_dir)
    for outer in (dict(type='RepeatDataset', times=2, dataset=inner),
                  dict(type='ConcatDataset', datasets=[inner, inner])):
        got = [*feature_caches_of(DATASETS.build(with_feature_cache(outer)))]
        assert len(got) == len(outer.get('datasets', [0]))
        assert all(isinstance(one, FeatureCacheDataset) for one in got)
    wrapped = with_feature_cache(inner)
    assert with_feature_cache(wrapped) == wrapped


def test_rejects_invalid_datasets(motion_dir, tmp_path):
    for dataset in dict(type='FeatureStreamDataset'), object():
        with pytest.raises(ValueError, match='config of a dataset of video'):
            with_feature_cache(dataset)
    with pytest.raises(ValueError, match='ends with PackActionInputs'):
        build(motion_dir, tmp_path, PIPELINE[:-1])
    with pytest.raises(ValueError, match='with a pipeline, got None'):
        FeatureCacheDataset(dict(type='RepeatDataset'))
    with pytest.raises(ValueError, match='changes the label of .*mp4'):
        build(motion_dir, tmp_path, [
            *PIPELINE[:-1], dict(type='RelabelForTest'), PIPELINE[-1]])[0]
    dataset = DATASETS.build(with_feature_cache(config(motion_dir)))
    with pytest.raises(ValueError, match='needs FeatureCacheHook in custom'):
        dataset[0]
