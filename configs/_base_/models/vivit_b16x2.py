# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 1, for Kinetics-400; see the class ViViT. Set init_cfg of
# the backbone to ImageNet-21k weights.
model = dict(
    type='Recognizer3D',
    backbone=dict(
        type='ViViT',
        num_frames=32,
        img_size=224,
        patch_size=16,
        tubelet_frames=2,
        model='joint',
        arch='B',
        attention=dict(type='SoftmaxAttention')),
    cls_head=dict(
        type='ViViTHead',
        num_classes=400,
        in_channels=768,
        average_clips='score'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        format_shape='NCTHW'))
