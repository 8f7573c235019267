# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-T for Kinetics-400; see the class DualFormer. Set init_cfg of the
# backbone to image weights.
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='DualFormer',
        arch='tiny',
        num_frames=32,
        img_size=224,
        drop_path_rate=0.1),
    cls_head=dict(
        type='I3DHead',
        num_classes=400,
        in_channels=512,
        dropout_ratio=0.5,
        average_clips='prob'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        format_shape='NCTHW'))
