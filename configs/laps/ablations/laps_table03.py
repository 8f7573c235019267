# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3: baselines without time on other networks.
table = 'Table 3'
base = 'laps_rest_s_k400'

rows = dict(
    laps_table03_rest_s_base2d=dict(
        row='Base2D on ResT-S',
        paper='top-1 68.13, 16.9 G, 13.4 M',
        model=dict(backbone=dict(attention='2d', shift='none'))),
    laps_table03_vit_base2d=dict(
        row='Base2D on ViT',
        paper='top-1 76.41, 141.0 G, 86.1 M',
        base='laps_vit_k400',
        model=dict(backbone=dict(attention='2d', shift='none')),
        train_dataloader=dict(batch_size=24),
        val_dataloader=dict(batch_size=24),
        optim_wrapper=dict(optimizer=dict(lr=0.24)),
        auto_scale_lr=dict(base_batch_size=96)))
