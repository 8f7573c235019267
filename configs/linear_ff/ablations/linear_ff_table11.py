# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 11: neighbors of the spatial shift.
table = 'Table 11'
base = 'linear_ff_ssv2'


def with_shift(mode, size):
    return dict(backbone=dict(spatial_shift=dict(
        _delete_=True, mode=mode, size=size, alpha=0.5)))


rows = dict(
    linear_ff_table11_cross1=dict(
        row='spatial shift, size 1',
        paper='top-1 65.5, top-5 90.1',
        model=with_shift('cross', 1)),
    linear_ff_table11_cross2=dict(
        row='spatial shift, size 2',
        paper='top-1 65.4, top-5 90.0',
        model=with_shift('cross', 2)),
    linear_ff_table11_square1=dict(
        row='squared kernel, size 1',
        paper='top-1 65.5, top-5 90.1',
        model=with_shift('square', 1)),
    linear_ff_table11_square2=dict(
        row='squared kernel, size 2',
        paper='top-1 65.2, top-5 89.8',
        model=with_shift('square', 2)))
