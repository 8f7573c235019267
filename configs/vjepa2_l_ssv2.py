# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Probe of V-JEPA 2 ViT-L on Something-Something v2. The authors: top-1 73.7 at
# 2 x 3 views, whose two clips are pooled together.
_base_ = [
    '_base_/models/vjepa2.py', '_base_/datasets/ssv2.py',
    '_base_/schedules/adamw_20e_probe.py', '_base_/default_runtime.py'
]

num_frames = 16
img_size = 256

# Two clips of 16 frames, 4 apart, which overlap in short videos. Clips are not
# flipped, because many classes name a direction.
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SampleFrames',
        clip_len=num_frames,
        frame_interval=4,
        num_clips=2,
        out_of_bound_opt='repeat_last'),
    dict(type='DecordDecode'),
    dict(
        type='RandAugment',
        num_ops=4,
        magnitude=7,
        magnitude_std=0.5,
        prob=0.5,
        interpolation='bicubic'),
    dict(
        type='RandomResizedCrop',
        area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3)),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='RandomErasing', erase_prob=0.25, mode='rand'),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SampleFrames',
        clip_len=num_frames,
        frame_interval=4,
        num_clips=2,
        out_of_bound_opt='repeat_last',
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SampleFrames',
        clip_len=num_frames,
        frame_interval=4,
        num_clips=2,
        out_of_bound_opt='repeat_last',
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='ThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_dataloader = dict(batch_size=4, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=4, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(batch_size=1, dataset=dict(pipeline=test_pipeline))
