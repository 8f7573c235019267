# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5: rivals on UCF-101.
table = 'Table 5'

rows = dict(
    laps_table05_tokshift_l_hr_ucf101=dict(
        row='TokShift-L (HR): 8 x 384 x 384',
        paper='top-1 96.80',
        base='laps_table05_tokshift_ucf101',
        img_size=384,
        train_pipeline=dict(RandomRescale=dict(scale_range=(384, 480))),
        model=dict(
            backbone=dict(arch='large'),
            cls_head=dict(in_channels=1024)),
        train_dataloader=dict(batch_size=1),
        val_dataloader=dict(batch_size=1),
        optim_wrapper=dict(optimizer=dict(lr=0.01)),
        auto_scale_lr=dict(base_batch_size=4)),
    laps_table05_tokshift_ucf101=dict(
        row='TokShift: 8 x 256 x 256',
        paper='top-1 95.35',
        base='laps_table05_vit_ucf101',
        model=dict(backbone=dict(shift='token'))),
    laps_table05_vit_ucf101=dict(
        row='ViT (Video): 8 x 256 x 256',
        paper='top-1 91.46',
        base=[
            'models/laps_vit.py',
            'datasets/ucf101.py',
            'pipelines/laps.py',
            'schedules/sgd_18e_laps.py',
            'default_runtime.py'],
        img_size=256,
        train_pipeline=dict(RandomRescale=dict(scale_range=(256, 380))),
        model=dict(backbone=dict(attention='2d', shift='none')),
        train_dataloader=dict(batch_size=16),
        val_dataloader=dict(batch_size=16),
        optim_wrapper=dict(optimizer=dict(lr=0.076)),
        auto_scale_lr=dict(base_batch_size=32)))
