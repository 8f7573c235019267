# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The causal linear video transformer as an online detector: frames in, scores
# of each frame out. Classes of THUMOS'14, with the background (0).
model = dict(
    type='OnlineActionDetector',
    carry_state=True,
    backbone=dict(
        type='OnlineVideoEncoder',
        num_anticipation_tokens=0,
        encoder=dict(
            type='LinearVideoTransformer',
            pattern='causal',
            img_size=224,
            embed_dims=512,
            num_layers=12,
            num_heads=8,
            attention=dict(
                type='LinearAttention', kernel='relu', offset='auto'),
            fixation=dict(mode='cooperative', inputs='qkv', shared=True),
            temporal_shift=dict(mode='tsm', divisor=4),
            spatial_shift=dict(mode='eight', size=1),
            decay=dict(half_life=(8, 512), learned=True))),
    cls_head=dict(
        type='OnlineActionHead',
        num_classes=22,
        in_channels=512,
        loss_cls=dict(type='MultiClassCrossEntropyLoss')),
    data_preprocessor=dict(
        type='VideoStreamPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5]))
