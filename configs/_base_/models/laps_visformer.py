# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Visformer-S with leap attention and periodic shift for Kinetics-400, as in
# the released code; see the class Visformer. Set init_cfg of the backbone to
# image weights.
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='Visformer',
        arch='small',
        num_frames=8,
        img_size=224,
        attention='leap',
        shift='periodic',
        pyramid=(1, 2, 3),
        shift_fraction=1 / 4,
        shift_first='next'),
    cls_head=dict(
        type='LAPSHead',
        num_classes=400,
        in_channels=768,
        label_smooth_eps=0.1,
        average_clips='score'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[123.93, 116.535, 103.785],
        std=[58.395, 57.12, 57.375],
        format_shape='NCTHW'))
