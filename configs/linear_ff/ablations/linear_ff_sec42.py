# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 4.2: the gate of Eqs. 4 and 5.
table = 'Sec. 4.2'
base = 'linear_ff_ssv2'

rows = dict(
    linear_ff_sec42_across_heads=dict(
        row='one map of all channels',
        paper='no figure',
        note='Eqs. 4 and 5 of the paper do not mention heads, so this gate'
        ' maps all channels at once; the released code has one map '
        'for the channels of each head.',
        model=dict(backbone=dict(fixation=dict(across_heads=True)))))
