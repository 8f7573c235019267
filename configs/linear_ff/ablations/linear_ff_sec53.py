# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 5.3: ablations of the text.
table = 'Sec. 5.3'
base = 'linear_ff_ssv2'

rows = dict(
    linear_ff_sec53_aggregate_add=dict(
        row='cooperation by addition',
        paper='top-1 about 0.5 below 65.46',
        model=dict(backbone=dict(fixation=dict(aggregate='add')))),
    linear_ff_sec53_aggregate_mul=dict(
        row='cooperation by multiplication',
        paper='top-1 about 0.5 below 65.46',
        model=dict(backbone=dict(fixation=dict(aggregate='mul')))),
    linear_ff_sec53_fixation_first=dict(
        row='fixation before association',
        paper="top-1 0.82 and top-5 0.42 below the default's 65.46 and 90.11",
        model=dict(backbone=dict(fixation_first=True))),
    linear_ff_sec53_no_kernel=dict(
        row='no kernel',
        paper='does not converge',
        note='Scores can be negative, so the sum that they are divided by '
        'may be zero.',
        model=dict(
            backbone=dict(attention=dict(kernel='identity', offset=0.0)))))
