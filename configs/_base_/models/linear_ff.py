# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The model of the released code for Something-Something v2; see the class
# LinearVideoTransformer.
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='LinearVideoTransformer',
        num_frames=16,
        img_size=224,
        embed_dims=512,
        num_layers=12,
        num_heads=8,
        attention=dict(type='LinearAttention', kernel='relu', offset='auto'),
        fixation=dict(mode='cooperative', inputs='qkv', shared=True),
        temporal_shift=dict(mode='tsm', divisor=4),
        spatial_shift=dict(mode='eight', size=1)),
    cls_head=dict(
        type='LinearVideoTransformerHead',
        num_classes=174,
        in_channels=512,
        hidden_dims=768,
        dropout_ratio=0.5,
        average_clips='score'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        format_shape='NCTHW'))
