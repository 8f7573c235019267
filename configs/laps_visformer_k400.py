# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS on Kinetics-400, clips of 8 x 224 x 224. Paper, Tables 1 to 4: top-1
# 76.04, top-5 92.56 at 5 x 3 views, 40.1 G multiply-accumulates per view, 39.8
# M parameters.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/kinetics400.py',
    '_base_/default_runtime.py'
]

# 8 frames spread over 64, as in the released code; 5 x 3 views, as in the
# paper. The released code tests 10 x 3 views.
num_frames = 8
img_size = 224

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SpreadSampleFrames',
        clip_len=num_frames,
        frame_interval=8,
        num_clips=1),
    dict(type='DecordDecode'),
    dict(type='RandomRescale', scale_range=(224, 360)),
    dict(type='RandomCrop', size=img_size),
    # Each adjustment applies to one clip in ten.
    dict(
        type='PhotometricJitter',
        prob=0.1,
        brightness=(0.5, 2),
        saturation=(0.5, 3),
        gamma=(0.8, 1.2),
        hue=(-0.5, 0.5)),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SpreadSampleFrames',
        clip_len=num_frames,
        frame_interval=8,
        num_clips=1,
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
        type='SpreadSampleFrames',
        clip_len=num_frames,
        frame_interval=8,
        num_clips=5,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='ThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_dataloader = dict(batch_size=40, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=40, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

# As in the released code: 18 epochs of SGD without warm-up and weight decay,
# ten batches per step, and after each epoch BatchNorm statistics from 200
# batches.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='SGD', lr=0.2, momentum=0.9, weight_decay=0),
    accumulative_counts=10,
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(
        type='MultiStepLR',
        milestones=[10, 15],
        gamma=0.1,
        by_epoch=True,
        begin=0,
        end=18)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=18, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
custom_hooks = [dict(type='PreciseBNHook', num_batches=200)]
auto_scale_lr = dict(enable=False, base_batch_size=320)
