# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1: leap attention and periodic shift.
table = 'Table 1'
base = 'laps_visformer_k400'

rows = dict(
    laps_table01_leap=dict(
        row='LA',
        paper='top-1 75.84, 40.1 G, 39.8 M',
        model=dict(backbone=dict(shift='none'))),
    laps_table01_periodic_shift=dict(
        row='P-Shift',
        paper='top-1 75.19, 39.1 G, 39.8 M',
        model=dict(backbone=dict(attention='2d'))),
    laps_table01_plain_shift=dict(
        row='plain shift',
        paper='top-1 74.86, 39.1 G, 39.8 M',
        model=dict(backbone=dict(attention='2d', shift='plain'))))
