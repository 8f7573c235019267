# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# A plain causal transformer on the features of THUMOS'14, as wide as TeSTra.
model = dict(
    type='OnlineActionDetector',
    backbone=dict(
        type='CausalTransformer',
        in_channels=dict(rgb=2048, flow=1024),
        embed_dims=1024,
        num_heads=16,
        ffn_dims=1024,
        num_layers=3,
        attention_window=64,
        work_memory_length=128,
        drop_rate=0.2),
    # 20 actions, the background (0) and "Ambiguous" (21).
    cls_head=dict(
        type='OnlineActionHead',
        num_classes=None,
        in_channels=1024,
        loss_cls=dict(type='MultiClassCrossEntropyLoss', ignore_index=21),
        score='prob'),
    data_preprocessor=dict(type='FeatureStreamPreprocessor'))
