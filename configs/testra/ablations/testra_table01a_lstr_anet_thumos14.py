# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1a, LSTR with features of networks trained on ActivityNet. Paper: 65.3
# mAP.
_base_ = '../../lstr_thumos14.py'

model = dict(backbone=dict(in_channels=dict(rgb=2048, flow=2048)))
anet = dict(
    data_prefix=dict(rgb='rgb_anet_resnet50', flow='flow_anet_resnet50'),
    feature_dims=dict(rgb=2048, flow=2048))
train_dataloader = dict(dataset=anet)
val_dataloader = dict(dataset=anet)
test_dataloader = dict(dataset=anet)
