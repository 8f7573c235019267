# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MAT on the features of THUMOS'14: two streams at 4 Hz, 256 s of long and 8 s
# of work memory, 2 s ahead to score and 12 s to train with.
model = dict(
    type='OnlineActionDetector',
    backbone=dict(
        type='MAT',
        in_channels=dict(rgb=2048, flow=1024),
        embed_dims=1024,
        num_heads=4,
        ffn_dims=1024,
        long_memory_length=256,
        work_memory_length=32,
        num_anticipation_tokens=8,
        anticipation_rate=1,
        num_groups=8,
        num_queries=16,
        num_encoder_layers=2,
        num_layers=2,
        num_future_queries=32,
        num_future_layers=2,
        num_future_tokens=48,
        num_rounds=2,
        share=0.75,
        drop_rate=0.,
        act='gelu'),
    # 20 actions, the background (0) and "Ambiguous" (21).
    cls_head=dict(
        type='MATHead',
        num_classes=22,
        in_channels=1024,
        work_weights=[0.2, 0.2, 1.],
        future_weight=0.1,
        loss_cls=dict(type='MultiClassCrossEntropyLoss', ignore_index=21),
        score='prob'),
    data_preprocessor=dict(type='FeatureStreamPreprocessor'))
