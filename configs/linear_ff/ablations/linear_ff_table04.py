# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4: inputs of the fixation ratio.
table = 'Table 4'
base = 'linear_ff_ssv2'

rows = dict(
    linear_ff_table04_no_fixation=dict(
        row='no fixation',
        paper='top-1 64.28',
        model=dict(backbone=dict(fixation=None))),
    linear_ff_table04_qk_cooperative=dict(
        row='Q and K, cooperative',
        paper='top-1 64.61',
        model=dict(backbone=dict(fixation=dict(inputs='qk', shared=False)))),
    linear_ff_table04_qk_cooperative_shared=dict(
        row='Q and K, cooperative, one ratio',
        paper='top-1 64.78',
        note="Counted like the released code, this network has the 257.8 G "
        "of Table 1.",
        model=dict(backbone=dict(fixation=dict(inputs='qk')))),
    linear_ff_table04_qk_separate=dict(
        row='Q and K, separate',
        paper='top-1 64.46',
        model=dict(
            backbone=dict(fixation=dict(_delete_=True, mode='separate')))),
    linear_ff_table04_qkv_cooperative=dict(
        row='Q, K and V, cooperative',
        paper='top-1 65.33',
        model=dict(backbone=dict(fixation=dict(shared=False)))),
    linear_ff_table04_qkv_cooperative_shared=dict(
        row='Q, K and V, cooperative, one ratio',
        paper='top-1 65.46'))
