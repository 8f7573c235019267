# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3: spatial shift (SS), temporal shift (TS), feature fixation (FF).
table = 'Table 3'
base = 'linear_ff_ssv2'
ALONE = dict(fixation=None, temporal_shift=None, spatial_shift=None)

rows = dict(
    linear_ff_table03_baseline=dict(
        row='baseline',
        paper='top-1 61.67',
        model=dict(backbone=dict(**ALONE))),
    linear_ff_table03_ff=dict(
        row='FF',
        paper='top-1 62.57',
        model=dict(backbone=dict(temporal_shift=None, spatial_shift=None))),
    linear_ff_table03_ss=dict(
        row='SS',
        paper='top-1 61.99',
        model=dict(backbone=dict(fixation=None, temporal_shift=None))),
    linear_ff_table03_ss_ts=dict(
        row='SS + TS',
        paper='top-1 64.28',
        model=dict(backbone=dict(fixation=None))),
    linear_ff_table03_ss_ts_ff=dict(
        row='SS + TS + FF',
        paper='top-1 65.46'),
    linear_ff_table03_ts=dict(
        row='TS',
        paper='top-1 64.18',
        model=dict(backbone=dict(fixation=None, spatial_shift=None))))
