# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-400 as ViViT reads it, as released in scenic: 32 frames, every
# second one.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=32, frame_interval=2)
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='ScenicSampleFrames', **clip),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=224),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='ScenicColorJitter', prob=0.8, gray_prob=0.1),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = change(
    _base_.val_pipeline,
    SlowFastSampleFrames=dict(type='ScenicSampleFrames', **clip),
    Resize=dict(scale=(-1, 256)))
test_pipeline = change(
    _base_.test_pipeline,
    SlowFastSampleFrames=dict(type='ScenicSampleFrames', **clip),
    Resize=dict(scale=(-1, 256)),
    ThreeCrop=dict(type='UniformThreeCrop'))

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
