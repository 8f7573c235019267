# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on EPIC-Kitchens-100, Laplace kernel. Paper, Table 3: mean top-5
# recall 30.8 of verbs, 35.8 of nouns, 17.6 of actions, with protocol='testra'
# of the metric.
_base_ = [
    '_base_/models/testra.py', '_base_/datasets/ek100_features.py',
    '_base_/schedules/adam_30e_testra_ek100.py', '_base_/default_runtime.py'
]

# 64 s of long and 5 s of work memory, and tokens one and five steps ahead.
model = dict(
    backbone=dict(
        in_channels=dict(_delete_=True, rgb=1024, flow=1024),
        embed_dims=2048,
        num_heads=8,
        ffn_dims=2048,
        long_memory_length=64,
        work_memory_length=10,
        num_anticipation_tokens=2,
        encoder=[
            dict(num_queries=16, num_layers=1),
            dict(num_queries=16, num_layers=2)
        ],
        decay=0.9,
        drop_rate=0.1),
    # Includes the background (class 0).
    cls_head=dict(
        num_classes=3807,
        in_channels=2048,
        num_verbs=98,
        num_nouns=301,
        dropout_ratio=0.8,
        loss_cls=dict(
            _delete_=True,
            type='EqualizationLoss',
            class_counts='data/ek100/train_class_counts.txt',
            ignore_index=0),
        loss_verb=dict(type='MultiClassCrossEntropyLoss', ignore_index=0),
        loss_noun=dict(type='MultiClassCrossEntropyLoss', ignore_index=0),
        score='logit'))
