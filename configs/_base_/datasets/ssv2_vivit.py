# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Something-Something v2 as ViViT reads it: 32 frames in a row, 256 x 256.
_base_ = 'ssv2.py'

from mmvidattn.utils.config import change

clip = dict(type='SampleFrames', clip_len=32, frame_interval=1)
# No Flip: many classes name a direction.
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(num_clips=1, **clip),
    dict(type='DecordDecode'),
    # 288 times 0.9 to 1.33.
    dict(type='RandomRescale', scale_range=(259, 383)),
    dict(type='RandomCrop', size=256),
    dict(type='RandAugment', num_ops=2, magnitude=10),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = change(
    _base_.val_pipeline, UniformSample=dict(num_clips=1, **clip),
    Resize=dict(scale=(-1, 288)), CenterCrop=dict(crop_size=256))
test_pipeline = change(
    _base_.test_pipeline, UniformSample=dict(num_clips=4, **clip),
    Resize=dict(scale=(-1, 256)), ThreeCrop=dict(crop_size=256))

train_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
