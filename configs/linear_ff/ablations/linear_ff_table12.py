# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 12: neighborhood association and feature fixation, Kinetics-400.
table = 'Table 12'
base = 'linear_ff_k400'
ALONE = dict(fixation=None, temporal_shift=None, spatial_shift=None)

rows = dict(
    linear_ff_table12_baseline=dict(
        row='baseline',
        paper='top-1 77.27',
        model=dict(backbone=dict(**ALONE))),
    linear_ff_table12_ff=dict(
        row='FF',
        paper='top-1 77.47',
        model=dict(backbone=dict(temporal_shift=None, spatial_shift=None))),
    linear_ff_table12_ss=dict(
        row='SS',
        paper='top-1 77.53',
        model=dict(backbone=dict(fixation=None, temporal_shift=None))),
    linear_ff_table12_ss_ts=dict(
        row='SS + TS',
        paper='top-1 77.70',
        model=dict(backbone=dict(fixation=None))),
    linear_ff_table12_ss_ts_ff=dict(
        row='SS + TS + FF',
        paper='top-1 77.96'),
    linear_ff_table12_ts=dict(
        row='TS',
        paper='top-1 77.43',
        model=dict(backbone=dict(fixation=None, spatial_shift=None))))
