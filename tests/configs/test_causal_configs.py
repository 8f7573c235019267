# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs of causal networks of videos, with narrow models."""
import pytest
import torch
from made_videos import write_opencv
from mmaction.registry import DATA_SAMPLERS, DATASETS, METRICS
from mmengine.dataset import pseudo_collate

from mmvidattn.apis import load_config

ONLINE = ['linear_ff_causal_thumos14_rgb', 'linear_ff_causal_ek100_rgb',
          'linear_ff_causal_tiny_synthetic']


@pytest.fixture
def narrow(tmp_path):
    """Load an online config with a narrow model and two short videos."""

    def read(name):
        cfg = load_config(name)
        backbone = cfg.model.backbone
        backbone.encoder.update(embed_dims=16, num_layers=1, num_heads=2)
        cfg.model.cls_head.in_channels = 16
        anticipates = 'ek100' in name
        folder = tmp_path / 'P01/videos'
        folder.mkdir(parents=True)
        for video in 'P01_01', 'P01_02':
            suffix = 'MP4' if anticipates else 'mp4'
            write_opencv(folder / f'{video}.{suffix}')
        lines = ('0,P01_01,1,29,1,2,0\n1,P01_01,29,59,0,1,1\n'
                 '2,P01_02,1,20,1,2,0\n3,P01_02,20,59,0,1,1\n'
                 if anticipates else 'video,start,end,label\n'
                 'P01_01,0.5,1.1,1\nP01_02,0.2,1.9,2\n')
        for split in 'train', 'val', 'test':
            data = cfg[f'{split}_dataloader'].dataset
            data.update(data_root=str(tmp_path), clip_frames=4,
                        ann_file='list.csv', frame_rate=10.)
            if not anticipates:
                # Names of classes are 0, 1, ...
                classes = [str(i) for i in range(cfg.num_classes)]
                data.update(metainfo=dict(classes=classes),
                            data_prefix=dict(video='P01/videos'))
            else:
                data.anticipation_steps, data.anticipation_rate = 2, 1
        (tmp_path / 'list.csv').write_text(lines)
        return cfg

    return read


@pytest.mark.parametrize('name', ONLINE)
def test_train_step_and_test_step(name, narrow, train_once):
    cfg = narrow(name)
    loader = cfg.train_dataloader
    data = DATASETS.build(loader.dataset)
    sampler = DATA_SAMPLERS.build(dict(loader.sampler, dataset=data, seed=0))
    batches = DATA_SAMPLERS.build(dict(
        loader.batch_sampler, sampler=sampler, batch_size=2))
    if cfg.model.cls_head.loss_cls.type == 'EqualizationLoss':
        cfg.model.cls_head.loss_cls.class_counts = None
    model, _ = train_once(cfg, next(iter(batches)))
    # Entire videos, in chunks.
    test = DATASETS.build(cfg.test_dataloader.dataset)
    with torch.no_grad():
        results = model.test_step(
            pseudo_collate([test[i] for i in range(len(test))]))
    if 'ek100' in name:
        cfg.test_evaluator.subsets = None
    metric = METRICS.build(cfg.test_evaluator)
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    want = 'action_top5_recall_testra_stream' if 'ek100' in name else (
        'mAP_stream')
    assert f'online/{want}' in metric.evaluate(len(results))
