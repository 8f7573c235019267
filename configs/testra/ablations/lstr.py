# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LSTR: options of the released code.
table = 'Released code'
base = 'lstr_thumos14'
LOADERS = 'train_dataloader', 'val_dataloader', 'test_dataloader'

rows = dict(
    lstr_no_long_memory_thumos14=dict(
        row='LSTR without a long memory',
        note='Two layers of causal self-attention over 8 s. In the released '
        'code, LONG_MEMORY_SECONDS: 0. No figure of it is at hand.',
        model=dict(backbone=dict(long_memory_length=0)),
        **dict.fromkeys(LOADERS, dict(dataset=dict(long_steps=0)))),
    lstr_refined_thumos14=dict(
        row='LSTR, refined',
        note='Self-attention for the second stage of its encoder: 16 '
        'queries compress the long memory, two layers refine them. In'
        ' the released code, ENC_MODULE: [[16, 1, True], [-1, 2, '
        'True]]. No figure of it is at hand.',
        model=dict(
            backbone=dict(
                encoder=[
                    dict(num_queries=16, num_layers=1),
                    dict(num_queries=None, num_layers=2)]))))
