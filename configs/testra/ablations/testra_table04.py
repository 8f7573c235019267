# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4: kernels.
table = 'Table 4'
base = 'testra_rgb_ek100'

rows = dict(
    testra_table04_box=dict(
        row='box kernel',
        paper='recall of actions 16.14 by FIFO, 16.08 by exponential '
        'smoothing that forgets nothing',
        model=dict(backbone=dict(decay=1.0))),
    testra_table04_laplace=dict(
        row='Laplace kernel',
        paper='recall of actions 16.95 in windows, 16.94 as a stream'))
