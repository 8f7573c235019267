# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7: model variants.
table = 'Table 7'
base = 'linear_ff_ssv2'

rows = dict(
    linear_ff_table07_default=dict(
        row='default',
        paper='top-1 65.46, top-5 90.11, 257.8 G'),
    linear_ff_table07_h=dict(
        row='H',
        paper='top-1 65.67, top-5 90.27, 530.2 G',
        base='linear_ff_h_ssv2'),
    linear_ff_table07_hr=dict(
        row='HR',
        paper='top-1 65.85, top-5 89.97, 573.3 G',
        base='linear_ff_hr_ssv2'),
    linear_ff_table07_s=dict(
        row='S',
        paper='top-5 88.68, 129.1 G',
        note='The paper does not give the top-1.',
        base='linear_ff_s_ssv2'))
