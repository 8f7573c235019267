# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The synthetic dataset of tools/data/motion/make_motion.py: eight classes that
# differ only in motion, so clips are not flipped.
dataset_type = 'CheckedVideoDataset'
data_root = 'data/motion'
ann_file_train = 'train.txt'
ann_file_val = 'val.txt'
num_classes = 8
num_frames = 8
img_size = 64
metainfo = dict(classes=f'{data_root}/label_map.txt')

file_client_args = dict(io_backend='disk')
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='UniformSample', clip_len=num_frames),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='UniformSample', clip_len=num_frames, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='UniformSample',
        clip_len=num_frames,
        num_clips=2,
        test_mode=True),
    dict(type='DecordDecode'),
    # ThreeCrop needs one side of the frame to equal the crop; 72 for a crop of
    # 64 keeps most of the frame.
    dict(type='Resize', scale=(img_size * 9 // 8, img_size), keep_ratio=False),
    dict(type='ThreeCrop', crop_size=img_size),
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
