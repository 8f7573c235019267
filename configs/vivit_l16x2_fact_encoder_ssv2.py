# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 2, on Something-Something v2, from a Kinetics or ImageNet
# model. The paper, Table 5e: top-1 65.9, top-5 89.9. Unlike the released
# recipe it does not flip clips, because many classes name a direction.
_base_ = 'vivit_l16x2_fact_encoder_ssv2_released.py'

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='ScenicSampleFrames', clip_len=32, frame_interval=1),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 288)),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=256),
    dict(type='ScenicRandAugment', num_ops=2, magnitude=20),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
