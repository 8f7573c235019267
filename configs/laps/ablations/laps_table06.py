# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6: rivals on EGTEA Gaze+.
table = 'Table 6'

rows = dict(
    laps_table06_tokshift_egtea=dict(
        row='TokShift: 8 x 224 x 224',
        paper='top-1 64.82',
        base='laps_table06_vit_egtea',
        model=dict(backbone=dict(shift='token'))),
    laps_table06_tokshift_hr_egtea=dict(
        row='TokShift (HR): 8 x 384 x 384',
        paper='top-1 65.77',
        base='laps_table06_tokshift_egtea',
        img_size=384,
        train_pipeline=dict(RandomRescale=dict(scale_range=(384, 512))),
        train_dataloader=dict(batch_size=5),
        val_dataloader=dict(batch_size=5),
        optim_wrapper=dict(optimizer=dict(lr=0.05)),
        auto_scale_lr=dict(base_batch_size=20)),
    laps_table06_vit_egtea=dict(
        row='ViT (Video): 8 x 224 x 224',
        paper='top-1 62.59',
        base=[
            'models/laps_vit.py',
            'datasets/egtea.py',
            'pipelines/laps.py',
            'schedules/sgd_36e_laps.py',
            'default_runtime.py'],
        model=dict(backbone=dict(attention='2d', shift='none')),
        train_dataloader=dict(batch_size=24),
        val_dataloader=dict(batch_size=24),
        optim_wrapper=dict(optimizer=dict(lr=0.24)),
        auto_scale_lr=dict(base_batch_size=96)))
