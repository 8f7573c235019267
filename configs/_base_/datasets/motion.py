# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The set that tools/data/motion/make_motion.py writes: eight classes that
# differ in motion only, so no Flip.
dataset_type = 'GuardedVideoDataset'
data_root = 'data/motion'
ann_file_train = 'train.txt'
ann_file_val = 'val.txt'
num_classes = 8
metainfo = dict(classes=f'{data_root}/label_map.txt')

file_client_args = dict(io_backend='disk')
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='UniformSample', clip_len=8),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(64, 64), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='UniformSample', clip_len=8, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(64, 64), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='UniformSample', clip_len=8, num_clips=2, test_mode=True),
    dict(type='DecordDecode'),
    # ThreeCrop needs one side to be the crop's; 72 keeps most of the frame.
    dict(type='Resize', scale=(72, 64), keep_ratio=False),
    dict(type='ThreeCrop', crop_size=64),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

dataset = dict(
    type=dataset_type,
    data_root=data_root,
    metainfo=metainfo,
    num_classes=num_classes)
train_dataloader = dict(
    batch_size=16,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file=ann_file_train,
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=16,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        pipeline=val_pipeline,
        test_mode=True,
        **dataset))
test_dataloader = dict(
    batch_size=8,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
