# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TVSeries as features at 4 Hz: 20 episodes to train on, 7 to test on. 31
# classes with the background (0).
dataset_type = 'FeatureStreamDataset'
data_root = 'data/tvseries'
num_classes = 31
classes = f'{data_root}/classes.txt'
feature_dims = dict(rgb=2048, flow=1024)
data_prefix = dict(
    rgb='rgb_kinetics_resnet50',
    flow='flow_kinetics_bninception',
    gt_action='target_perframe')
memory = dict(long_steps=2048, long_rate=4, work_steps=32, work_rate=1)

pipeline = [dict(type='LoadFeatureWindow'), dict(type='PackFeatureInputs')]
dataset = dict(
    type=dataset_type,
    data_root=data_root,
    data_prefix=data_prefix,
    metainfo=dict(classes=classes),
    feature_dims=feature_dims,
    feature_rate=4.,
    pipeline=pipeline,
    **memory)

train_dataloader = dict(
    batch_size=16,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='RandomOffsetSampler'),
    dataset=dict(ann_file='train.txt', **dataset))
# A quick score during training; papers do not report it.
val_dataloader = dict(
    batch_size=16,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='test.txt',
        windows='non_overlapping',
        test_mode=True,
        **dataset))
# One window for each step of a video, as papers report it.
test_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='test.txt', windows='videos', test_mode=True, **dataset))

val_evaluator = dict(type='PerFrameMAP', metric='cAP')
test_evaluator = dict(
    type='PerFrameMAP', metric='cAP', per_class=True, per_stage=True)

# Source of the features (tools/data/online/README.md): every 4th of 6 frames
# at 24 frames/s, and the flow between all 6.
online = dict(
    extractors=dict(
        rgb=dict(
            config='tsn_resnet50_rgb',
            checkpoint='tsn_resnet50_rgb.pth',
            sample_fps=24.),
        flow=dict(
            config='tsn_bninception_flow',
            checkpoint='tsn_bninception_flow.pth',
            flow='tvl1',
            flow_side=180,
            bound=20.,
            sample_fps=24.)))
