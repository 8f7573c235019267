# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MAT on EPIC-Kitchens-100. The authors' page: mean top-5 recall 35.0 of verbs,
# 38.8 of nouns, 19.5 of actions, with protocol='testra' of the metric.
_base_ = [
    '_base_/models/mat.py', '_base_/datasets/ek100_features.py',
    '_base_/schedules/adam_30e_testra_ek100.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        in_channels=dict(_delete_=True, rgb=1024, flow=1024),
        embed_dims=2048,
        ffn_dims=2048,
        long_memory_length=64,
        work_memory_length=10,
        num_anticipation_tokens=2,
        anticipation_rate=4),
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
            tail_below=1.76e-3,
            ignore_index=0),
        loss_verb=dict(type='MultiClassCrossEntropyLoss', ignore_index=0),
        loss_noun=dict(type='MultiClassCrossEntropyLoss', ignore_index=0),
        score='logit'))

train_pipeline = [
    dict(type='MixClipPlusPlus', prob=0.5, mode='single', weight=0.25),
    dict(type='LoadFeatureWindow'),
    dict(type='PackFeatureInputs')
]
stretch = dict(stretch_long_memory=True)
train_dataloader = dict(
    dataset=dict(future_steps=48, pipeline=train_pipeline, **stretch))
val_dataloader = dict(dataset=stretch)
test_dataloader = dict(dataset=stretch)

optim_wrapper = dict(optimizer=dict(lr=7e-5))
param_scheduler = dict(warmup=10)
custom_hooks = [dict(type='EMAHook', momentum=0.001)]
