# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 1, on Kinetics-400. The paper, Table 2: top-1 80.0, 455.2
# GFLOPs per view; the released model: 79.9 at 4 x 3 views.
_base_ = [
    '_base_/models/vivit_b16x2.py', '_base_/datasets/kinetics400.py',
    '_base_/default_runtime.py'
]

# Clips as in scenic's ViViT: 32 frames with a stride of 2.
num_frames = 32
img_size = 224

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='ScenicSampleFrames', clip_len=num_frames, frame_interval=2),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=img_size),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='ScenicColorJitter', prob=0.8, gray_prob=0.1),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='ScenicSampleFrames',
        clip_len=num_frames,
        frame_interval=2,
        num_clips=1,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='ScenicSampleFrames',
        clip_len=num_frames,
        frame_interval=2,
        num_clips=4,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='UniformThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

# As released: SGD with momentum, no weight decay, 2.5 epochs of linear
# warm-up, then a cosine schedule to zero, updated at each iteration. The
# learning rate is for 64 clips per batch.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=0.),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=0.001,
        by_epoch=True,
        begin=0,
        end=2.5,
        convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR',
        T_max=27.5,
        eta_min=0,
        by_epoch=True,
        begin=2.5,
        end=30,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=30, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=64)
