# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4: rivals on Kinetics-400.
table = 'Table 4'
base = 'laps_vit_k400'
apart = dict(SpreadSampleFrames=dict(frame_interval=32))

rows = dict(
    laps_table04_tokshift_mr=dict(
        row='TokShift (MR): 8 x 256 x 256',
        paper='top-1 77.68, top-5 93.55, 175.8 G, 85.9 M; without the '
        'products of attention, as "ViT (Video)"',
        note="The learning rate follows TokShift's repository: 16 clips on"
        " each of two GPUs.",
        img_size=256,
        train_pipeline=dict(
            SpreadSampleFrames=dict(frame_interval=32),
            RandomRescale=dict(scale_range=(256, 380))),
        val_pipeline=apart,
        test_pipeline=apart,
        model=dict(backbone=dict(attention='2d', shift='token')),
        train_dataloader=dict(batch_size=16),
        val_dataloader=dict(batch_size=16),
        optim_wrapper=dict(optimizer=dict(lr=0.076)),
        auto_scale_lr=dict(base_batch_size=32)),
    laps_table04_vit_8x32=dict(
        row='ViT (Video): 8 x 224 x 224, frames 32 apart',
        paper='top-1 76.00, top-5 92.50, 134.7 G, 85.9 M; without the '
        'products of attention',
        base='laps_table03_vit_base2d',
        train_pipeline=apart,
        val_pipeline=apart,
        test_pipeline=apart))
