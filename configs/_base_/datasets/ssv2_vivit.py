# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Something-Something v2 as ViViT reads it, as released in scenic: 32 frames in
# a row, 256 x 256, mirrored at random.
_base_ = 'ssv2.py'

from mmvidattn.utils.config import change

clip = dict(type='ScenicSampleFrames', clip_len=32, frame_interval=1)
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    clip,
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 288)),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=256),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='ScenicRandAugment', num_ops=2, magnitude=20),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = change(
    _base_.val_pipeline, SegmentSampleFrames=clip,
    Resize=dict(scale=(-1, 288)), CenterCrop=dict(crop_size=256))
test_pipeline = change(
    _base_.test_pipeline, SegmentSampleFrames=dict(num_clips=4, **clip),
    Resize=dict(scale=(-1, 288)),
    ThreeCrop=dict(type='UniformThreeCrop', crop_size=256))

train_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
