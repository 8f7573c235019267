# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5: kernel functions.
table = 'Table 5'
base = 'linear_ff_ssv2'

rows = dict(
    linear_ff_table05_elu1=dict(
        row='ELU + 1',
        paper='top-1 60.42',
        note="The same figure is that of Table 9's baseline without NA and "
        "FF; with both, as here, Table 9 has 64.76.",
        model=dict(
            backbone=dict(attention=dict(kernel='elu+1', offset=0.0)))),
    linear_ff_table05_relu=dict(
        row='ReLU',
        paper='top-1 65.46'),
    linear_ff_table05_sigmoid=dict(
        row='sigmoid',
        paper='top-1 63.26',
        model=dict(
            backbone=dict(attention=dict(kernel='sigmoid', offset=0.0)))))
