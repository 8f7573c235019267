# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on the features of THUMOS'14: two streams at 4 Hz, 512 s of long and
# 8 s of work memory. See the class TeSTra.
model = dict(
    type='OnlineActionDetector',
    backbone=dict(
        type='TeSTra',
        in_channels=dict(rgb=2048, flow=1024),
        embed_dims=1024,
        num_heads=16,
        ffn_dims=1024,
        long_memory_length=512,
        work_memory_length=32,
        num_anticipation_tokens=0,
        encoder=[
            dict(num_queries=16, num_layers=1),
            dict(num_queries=32, num_layers=2)
        ],
        num_layers=2,
        decay=0.97,
        fusion='compressed',
        drop_rate=0.2),
    # 20 actions, the background (0) and "Ambiguous" (21).
    cls_head=dict(
        type='OnlineActionHead',
        num_classes=22,
        in_channels=1024,
        loss_cls=dict(type='MultiClassCrossEntropyLoss', ignore_index=21),
        score='prob'),
    data_preprocessor=dict(type='FeatureStreamPreprocessor'))
