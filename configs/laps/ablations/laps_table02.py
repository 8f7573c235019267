# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2: leaps.
table = 'Table 2'
base = 'laps_visformer_k400'
# Settings of the released files.
version_1 = dict(
    train_pipeline=dict(RandomRescale=dict(scale_range=(224, 320))),
    model=dict(backbone=dict(shift_fraction=1 / 8)),
    optim_wrapper=dict(optimizer=dict(lr=0.09023)))

rows = dict(
    laps_table02_r1=dict(
        row='R = [1, 1, 1]',
        paper='top-1 75.86',
        model=dict(backbone=dict(pyramid=(1, )))),
    laps_table02_r1_v1=dict(
        row='R = [1, 1, 1], as its released file has it',
        paper='top-1 75.86',
        base='laps_table02_r1',
        **version_1),
    laps_table02_r2=dict(
        row='R = [2, 2, 2]',
        paper='top-1 75.82',
        model=dict(backbone=dict(pyramid=(2, )))),
    laps_table02_r2_v1=dict(
        row='R = [2, 2, 2], as its released file has it',
        paper='top-1 75.82',
        base='laps_table02_r2',
        **version_1),
    laps_table02_r3=dict(
        row='R = [3, 3, 3]',
        paper='top-1 75.55',
        model=dict(backbone=dict(pyramid=(3, )))),
    laps_table02_r3_v1=dict(
        row='R = [3, 3, 3], as its released file has it',
        paper='top-1 75.55',
        base='laps_table02_r3',
        **version_1))
