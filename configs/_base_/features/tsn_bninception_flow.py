# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# BN-Inception of TSN on Kinetics-400, for the optical-flow features of LSTR
# and TeSTra (flow_kinetics_bninception, 1024 wide). The source bn_inception
# converts its weights. See tools/data/online/README.md.
flow_fields = 5
model = dict(
    type='Recognizer2D',
    backbone=dict(type='BNInception', in_channels=2 * flow_fields),
    cls_head=dict(
        type='TSNHead',
        num_classes=400,
        in_channels=1024,
        average_clips='prob'),
    # Flow is stored as bytes; 128 means no motion.
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[128] * 2 * flow_fields,
        std=[1] * 2 * flow_fields,
        format_shape='NCHW'))
# LSTR's authors report that they use the ten crops of SSN.
test_pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=flow_fields, num_clips=1,
         test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='FlowTenCrop', crop_size=224),
    dict(type='FormatShape', input_format='NCHW'),
    dict(type='PackActionInputs')
]
