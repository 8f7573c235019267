# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ResNet-50 of TSN on Kinetics-400, mmaction2's, for features of images: what
# LSTR and TeSTra read as rgb_kinetics_resnet50, 2048 wide. Its weights:
# tsn_r50_320p_1x1x8_100e_kinetics400_rgb of mmaction2 0.x, the one LSTR's
# page names, or those of 1.x, or MIT's, converted by tsn_resnet. See
# tools/data/online/README.md.
model = dict(
    type='Recognizer2D',
    backbone=dict(type='ResNet', depth=50, norm_eval=False),
    cls_head=dict(
        type='TSNHead',
        num_classes=400,
        in_channels=2048,
        average_clips='prob'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        format_shape='NCHW'))
# The crop is that of mmaction2's tool for features of TSN; LSTR and TeSTra
# tell none.
test_pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=1, num_clips=1, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='CenterCrop', crop_size=256),
    dict(type='FormatShape', input_format='NCHW'),
    dict(type='PackActionInputs')
]
