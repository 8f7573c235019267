# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5: positions.
table = 'Table 5'
base = 'testra_rgb_ek100'

rows = dict(
    testra_table05_long_short=dict(
        row='positions in both memories',
        paper='recall of actions 16.8',
        model=dict(backbone=dict(long_memory_pos_embed=True))),
    testra_table05_none=dict(
        row='positions in neither memory',
        paper='recall of actions 15.7',
        model=dict(backbone=dict(work_memory_pos_embed=False))),
    testra_table05_short=dict(
        row='positions in the short memory',
        paper='recall of actions 17.0'))
