# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of Kinetics, as in scenic's ViViT: 32 frames with a stride of 2.
_base_ = 'linear_ff_kinetics.py'

from mmvidattn.utils.config import derive

clip = dict(type='ScenicSampleFrames', frame_interval=2)
resize = dict(scale=(-1, 256))
derive(
    _base_,
    num_frames=32,
    val_pipeline=dict(SlowFastSampleFrames=clip, Resize=resize),
    test_pipeline=dict(
        SlowFastSampleFrames=clip,
        Resize=resize,
        ThreeCrop=dict(type='UniformThreeCrop')))

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(clip_len=_base_.num_frames, **clip),
    dict(type='DecordDecode'),
    dict(type='Resize', **resize),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=_base_.img_size),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='ScenicColorJitter', prob=0.8, gray_prob=0.1),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
