# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LSTR: TeSTra's model with plain attention to a long memory with positions;
# the work memory is not part of the long memory.
_base_ = 'testra.py'

model = dict(
    backbone=dict(decay=1., fusion='none', long_memory_pos_embed=True))
