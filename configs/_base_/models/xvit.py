# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViT-B/16 of each frame with space-time mixing, for Something-Something v2;
# see the class XViT. Set init_cfg of the backbone to ImageNet-21k weights.
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='XViT',
        num_frames=16,
        img_size=224,
        embed_dims=768,
        num_layers=12,
        num_heads=12,
        attention=dict(type='SoftmaxAttention'),
        temporal_shift=dict(mode='tsm', divisor=4)),
    cls_head=dict(
        type='XViTHead',
        num_classes=174,
        in_channels=768,
        num_heads=12,
        hidden_dims=768,
        dropout_ratio=0.5,
        average_clips='score'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        format_shape='NCTHW'))
