# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MiniROAD on TVSeries. Its flow features come from a network without a config
# in this project. The authors' page: 89.6 mcAP.
_base_ = [
    '_base_/models/miniroad.py', '_base_/datasets/tvseries_features.py',
    '_base_/schedules/adamw_10e_miniroad.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(in_channels=dict(flow=2048)), cls_head=dict(num_classes=31))

window = dict(
    long_steps=0,
    work_steps=128,
    feature_dims=dict(flow=2048),
    data_prefix=dict(flow='flow_kinetics_resnet50'))
# A window ends at every fourth step of a video, starting with the first.
train_dataloader = dict(
    batch_size=64,
    sampler=dict(stride=4),
    dataset=dict(pad_start=True, **window))
# Evaluate whole videos, also during training.
val_dataloader = dict(batch_size=1, dataset=dict(windows='videos', **window))
test_dataloader = dict(dataset=window)
auto_scale_lr = dict(base_batch_size=64)
# This project has no config for the network of these flow features.
online = dict(_delete_=True)
