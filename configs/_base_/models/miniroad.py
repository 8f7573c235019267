# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MiniROAD on the features of THUMOS'14: a layer for each frame, and a GRU.
model = dict(
    type='OnlineActionDetector',
    backbone=dict(
        type='MiniROAD',
        in_channels=dict(rgb=2048, flow=1024),
        embed_dims=1024,
        proj_dims=2048,
        num_layers=1,
        work_memory_length=128,
        drop_rate=0.2),
    # 20 actions, the background (0) and "Ambiguous" (21), which training
    # treats as a class. Only the last step of a window has a loss.
    cls_head=dict(
        type='OnlineActionHead',
        num_classes=22,
        in_channels=1024,
        num_loss_steps=1,
        loss_cls=dict(
            type='MultiClassCrossEntropyLoss',
            ignore_index=None,
            normalize_targets=True),
        score='prob'),
    data_preprocessor=dict(type='FeatureStreamPreprocessor'))
