# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1a: features trained on ActivityNet.
table = 'Table 1a'
base = 'testra_thumos14'
LOADERS = 'train_dataloader', 'val_dataloader', 'test_dataloader'
anet = dict(
    model=dict(backbone=dict(in_channels=dict(rgb=2048, flow=2048))),
    **dict.fromkeys(LOADERS, dict(dataset=dict(
        data_prefix=dict(rgb='rgb_anet_resnet50', flow='flow_anet_resnet50'),
        feature_dims=dict(rgb=2048, flow=2048)))))

rows = dict(
    testra_table01a_anet_thumos14=dict(
        row='features of networks trained on ActivityNet',
        paper='68.2 mAP',
        note='It does not say which kernel; this is the Laplace kernel.',
        **anet),
    testra_table01a_lstr_anet_thumos14=dict(
        row='LSTR with features of networks trained on ActivityNet',
        paper='65.3 mAP',
        base='lstr_thumos14',
        **anet))
