# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of Something-Something v2, as in scenic's ViViT: 32 consecutive frames,
# 256 x 256, flipped at random.
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import derive

clip = dict(type='ScenicSampleFrames', frame_interval=1)
resize = dict(scale=(-1, 288))
derive(
    _base_,
    num_frames=32,
    img_size=256,
    val_pipeline=dict(SegmentSampleFrames=clip, Resize=resize),
    test_pipeline=dict(
        SegmentSampleFrames=dict(num_clips=4, **clip),
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
    dict(type='ScenicRandAugment', num_ops=2, magnitude=20),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
