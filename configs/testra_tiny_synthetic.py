# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra in minutes on a CPU, on the streams that
# tools/data/online/make_synthetic.py writes. Results are in
# tools/data/online/README.md.
_base_ = ['_base_/models/testra.py', '_base_/default_runtime.py']

data_root = 'data/online_synthetic'
num_classes = 10
memory = dict(
    long_steps=512,
    long_rate=4,
    work_steps=32,
    work_rate=1,
    anticipation_steps=4,
    anticipation_rate=1)
test_pipeline = [
    dict(type='LoadFeatureWindow'),
    dict(type='PackFeatureInputs')
]
train_pipeline = [dict(type='MixClip', prob=0.5), *test_pipeline]
dataset = dict(
    type='FeatureStreamDataset',
    data_root=data_root,
    data_prefix=dict(rgb='rgb', flow='flow', gt_action='target_perframe'),
    metainfo=dict(classes=f'{data_root}/classes.txt'),
    feature_rate=4.,
    **memory)

model = dict(
    backbone=dict(
        in_channels=dict(rgb=32, flow=16),
        embed_dims=64,
        num_heads=4,
        ffn_dims=128,
        long_memory_length=128,
        work_memory_length=32,
        num_anticipation_tokens=4,
        encoder=[
            dict(num_queries=8, num_layers=1),
            dict(num_queries=8, num_layers=1)
        ],
        decay=0.97,
        drop_rate=0.1),
    cls_head=dict(
        num_classes=num_classes,
        in_channels=64,
        loss_cls=dict(ignore_index=None)))

train_dataloader = dict(
    batch_size=32,
    num_workers=0,
    sampler=dict(type='RandomOffsetSampler'),
    dataset=dict(ann_file='train.txt', pipeline=train_pipeline, **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='val.txt',
        windows='videos',
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))
val_dataloader = dict(
    batch_size=32,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='val.txt',
        windows='non_overlapping',
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))
val_evaluator = dict(type='PerFrameMAP')
test_evaluator = dict(type='PerFrameMAP', per_class=True)

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.01),
    clip_grad=dict(max_norm=1.0))
param_scheduler = dict(
    type='WarmupCosineLR',
    warmup=1,
    begin=0,
    end=6,
    by_epoch=True,
    convert_to_iter_based=True)
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=6, val_interval=3)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
randomness = dict(seed=0)
