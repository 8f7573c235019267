# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2: anticipation on THUMOS'14.
table = 'Table 2'
base = 'testra_anticipation_thumos14'
LOADERS = 'train_dataloader', 'val_dataloader', 'test_dataloader'
anet = dict(
    model=dict(backbone=dict(in_channels=dict(rgb=2048, flow=2048))),
    **dict.fromkeys(LOADERS, dict(dataset=dict(
        data_prefix=dict(rgb='rgb_anet_resnet50', flow='flow_anet_resnet50'),
        feature_dims=dict(rgb=2048, flow=2048)))))
ahead = dict.fromkeys(LOADERS, dict(dataset=dict(
    anticipation_steps=8, anticipation_rate=1)))

rows = dict(
    testra_table02_anet_thumos14=dict(
        row='anticipation with features of networks trained on ActivityNet',
        paper='mAP 64.7 at 0.25 s to 47.8 at 2 s, 55.3 on average',
        **anet),
    testra_table02_lstr_anet_thumos14=dict(
        row='anticipation with LSTR and features of networks trained on '
        'ActivityNet',
        paper='mAP 50.1 on average',
        base='testra_table02_lstr_thumos14',
        **anet),
    testra_table02_lstr_thumos14=dict(
        row="anticipation with LSTR, run by TeSTra's authors",
        paper='mAP 60.4 at 0.25 s to 45.7 at 2 s, 52.6 on average',
        base='lstr_thumos14',
        model=dict(backbone=dict(num_anticipation_tokens=8)),
        **ahead))
