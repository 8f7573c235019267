# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ResNet-50 of mmaction2's TSN on Kinetics-400, for the RGB features of LSTR
# and TeSTra (rgb_kinetics_resnet50, 2048 wide). Weights: mmaction2 0.x's
# tsn_r50_320p_1x1x8_100e_kinetics400_rgb, which LSTR's page names, mmaction2
# 1.x's, or MIT's, converted by tsn_resnet. See tools/data/online/README.md.
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
# The crop of mmaction2's extraction tool for TSN; LSTR and TeSTra document
# none.
test_pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=1, num_clips=1, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='CenterCrop', crop_size=256),
    dict(type='FormatShape', input_format='NCHW'),
    dict(type='PackActionInputs')
]
