# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-400 as ViViT reads it: 32 frames, every second one.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=32, frame_interval=2)
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='SampleFrames', num_clips=1, **clip),
    dict(type='DecordDecode'),
    # 256 times 0.9 to 1.33.
    dict(type='RandomRescale', scale_range=(230, 340)),
    dict(type='RandomCrop', size=224),
    dict(type='Flip', flip_ratio=0.5),
    dict(
        type='RandomApply',
        transforms=[
            dict(
                type='ColorJitter',
                brightness=0.5,
                contrast=0.5,
                saturation=0.5,
                hue=0.1)
        ],
        prob=0.8),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = change(
    _base_.val_pipeline, SampleFrames=clip, Resize=dict(scale=(-1, 256)))
test_pipeline = change(_base_.test_pipeline, SampleFrames=clip)

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
