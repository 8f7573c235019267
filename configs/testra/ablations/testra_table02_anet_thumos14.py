# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, anticipation with features of networks trained on ActivityNet.
# Paper: mAP 64.7 at 0.25 s to 47.8 at 2 s, 55.3 on average.
_base_ = '../../testra_anticipation_thumos14.py'

model = dict(backbone=dict(in_channels=dict(rgb=2048, flow=2048)))
anet = dict(
    data_prefix=dict(rgb='rgb_anet_resnet50', flow='flow_anet_resnet50'),
    feature_dims=dict(rgb=2048, flow=2048))
train_dataloader = dict(dataset=anet)
val_dataloader = dict(dataset=anet)
test_dataloader = dict(dataset=anet)
