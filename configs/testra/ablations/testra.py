# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Rows of the tables. `options` are those of --cfg-options, applied to `base`.
ANET = {
    'model.backbone.in_channels.rgb': 2048,
    'model.backbone.in_channels.flow': 2048,
    'train_dataloader.dataset.data_prefix.rgb': 'rgb_anet_resnet50',
    'train_dataloader.dataset.data_prefix.flow': 'flow_anet_resnet50',
    'train_dataloader.dataset.feature_dims.rgb': 2048,
    'train_dataloader.dataset.feature_dims.flow': 2048,
    'val_dataloader.dataset.data_prefix.rgb': 'rgb_anet_resnet50',
    'val_dataloader.dataset.data_prefix.flow': 'flow_anet_resnet50',
    'val_dataloader.dataset.feature_dims.rgb': 2048,
    'val_dataloader.dataset.feature_dims.flow': 2048,
    'test_dataloader.dataset.data_prefix.rgb': 'rgb_anet_resnet50',
    'test_dataloader.dataset.data_prefix.flow': 'flow_anet_resnet50',
    'test_dataloader.dataset.feature_dims.rgb': 2048,
    'test_dataloader.dataset.feature_dims.flow': 2048}
AHEAD = {
    'train_dataloader.dataset.anticipation_steps': 8,
    'train_dataloader.dataset.anticipation_rate': 1,
    'val_dataloader.dataset.anticipation_steps': 8,
    'val_dataloader.dataset.anticipation_rate': 1,
    'test_dataloader.dataset.anticipation_steps': 8,
    'test_dataloader.dataset.anticipation_rate': 1}
NO_LONG_MEMORY = {
    'model.backbone.long_memory_length': 0,
    'train_dataloader.dataset.long_steps': 0,
    'val_dataloader.dataset.long_steps': 0,
    'test_dataloader.dataset.long_steps': 0}

rows = dict(
    # Table 1a: features trained on ActivityNet.
    testra_table01a_anet_thumos14=dict(
        table='Table 1a',
        row='features of networks trained on ActivityNet',
        paper='68.2 mAP',
        note='It does not say which kernel; this is the Laplace kernel.',
        base='testra_thumos14',
        options=ANET),
    testra_table01a_lstr_anet_thumos14=dict(
        table='Table 1a',
        row='LSTR with features of networks trained on ActivityNet',
        paper='65.3 mAP',
        base='lstr_thumos14',
        options=ANET),
    # Table 2: anticipation on THUMOS'14.
    testra_table02_anet_thumos14=dict(
        table='Table 2',
        row='anticipation with features of networks trained on ActivityNet',
        paper='mAP 64.7 at 0.25 s to 47.8 at 2 s, 55.3 on average',
        base='testra_anticipation_thumos14',
        options=ANET),
    testra_table02_lstr_anet_thumos14=dict(
        table='Table 2',
        row='anticipation with LSTR and features of networks trained on '
        'ActivityNet',
        paper='mAP 50.1 on average',
        base='testra_table02_lstr_thumos14',
        options=ANET),
    testra_table02_lstr_thumos14=dict(
        table='Table 2',
        row="anticipation with LSTR, run by TeSTra's authors",
        paper='mAP 60.4 at 0.25 s to 45.7 at 2 s, 52.6 on average',
        base='lstr_thumos14',
        options={**AHEAD, 'model.backbone.num_anticipation_tokens': 8}),
    # Table 4: kernels.
    testra_table04_box=dict(
        table='Table 4',
        row='box kernel',
        paper='recall of actions 16.14 by FIFO, 16.08 by exponential '
        'smoothing that forgets nothing',
        base='testra_rgb_ek100',
        options={'model.backbone.decay': 1.0}),
    testra_table04_laplace=dict(
        table='Table 4',
        row='Laplace kernel',
        paper='recall of actions 16.95 in windows, 16.94 as a stream',
        base='testra_rgb_ek100'),
    # Table 5: positions.
    testra_table05_long_short=dict(
        table='Table 5',
        row='positions in both memories',
        paper='recall of actions 16.8',
        base='testra_rgb_ek100',
        options={'model.backbone.long_memory_pos_embed': True}),
    testra_table05_none=dict(
        table='Table 5',
        row='positions in neither memory',
        paper='recall of actions 15.7',
        base='testra_rgb_ek100',
        options={'model.backbone.work_memory_pos_embed': False}),
    testra_table05_short=dict(
        table='Table 5',
        row='positions in the short memory',
        paper='recall of actions 17.0',
        base='testra_rgb_ek100'),
    # Table 6a: rate of MixClip.
    testra_table06a_mixclip_0=dict(
        table='Table 6a',
        row='MixClip rate 0',
        paper='recall of verbs, nouns and actions 25.8, 34.6, 15.5',
        base='testra_rgb_ek100',
        options={'train_pipeline.0.prob': 0}),
    testra_table06a_mixclip_2=dict(
        table='Table 6a',
        row='MixClip rate 0.2',
        paper='recall of verbs, nouns and actions 26.0, 35.3, 16.0',
        base='testra_rgb_ek100',
        options={'train_pipeline.0.prob': 0.2}),
    testra_table06a_mixclip_5=dict(
        table='Table 6a',
        row='MixClip rate 0.5',
        paper='recall of verbs, nouns and actions 26.8, 36.2, 17.0',
        base='testra_rgb_ek100',
        options={'train_pipeline.0.prob': 0.5}),
    testra_table06a_mixclip_8=dict(
        table='Table 6a',
        row='MixClip rate 0.8',
        paper='recall of verbs, nouns and actions 26.2, 35.2, 16.2',
        base='testra_rgb_ek100',
        options={'train_pipeline.0.prob': 0.8}),
    # Table 6b: fusion of the memories.
    testra_table06b_compressed_memory=dict(
        table='Table 6b',
        row='the work memory beside the compressed one',
        paper='recall of actions 17.0',
        base='testra_rgb_ek100'),
    testra_table06b_long_memory=dict(
        table='Table 6b',
        row='the work memory behind the long one',
        paper='recall of actions 16.0',
        base='testra_rgb_ek100',
        options={'model.backbone.fusion': 'long'}),
    testra_table06b_no_fuse=dict(
        table='Table 6b',
        row='the memories apart',
        paper='recall of actions 15.9',
        base='testra_rgb_ek100',
        options={'model.backbone.fusion': 'none'}),
    testra_table06b_no_long_memory=dict(
        table='Table 6b',
        row='without a long memory',
        paper='recall of actions 16.1',
        base='testra_rgb_ek100',
        options={
            **NO_LONG_MEMORY,
            'train_pipeline': [
                dict(type='LoadFeatureWindow'),
                dict(type='PackFeatureInputs')]}),
    # LSTR: options of the released code.
    lstr_no_long_memory_thumos14=dict(
        table='Released code',
        row='LSTR without a long memory',
        note='Two layers of causal self-attention over 8 s. In the released '
        'code, LONG_MEMORY_SECONDS: 0. No figure of it is at hand.',
        base='lstr_thumos14',
        options=NO_LONG_MEMORY),
    lstr_refined_thumos14=dict(
        table='Released code',
        row='LSTR, refined',
        note='Self-attention for the second stage of its encoder: 16 queries'
        ' compress the long memory, two layers refine them. In the '
        'released code, ENC_MODULE: [[16, 1, True], [-1, 2, True]]. No '
        'figure of it is at hand.',
        base='lstr_thumos14',
        options={
            'model.backbone.encoder': [
                dict(num_queries=16, num_layers=1),
                dict(num_queries=None, num_layers=2)]}))
