# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3: levels of attention in each stage.
table = 'Table 3'
base = 'dualformer_tiny_k400'

rows = dict(
    dualformer_table03_gg_gg_gg_gg=dict(
        row='(GG, GG, GG, GG)',
        paper='228 G for 4 x 1 views, 21.8 M, top-1 77.6, top-5 93.2',
        model=dict(backbone=dict(pattern=('GG', 'GG', 'GG', 'GG')))),
    dualformer_table03_lg1=dict(
        row='LG_1: the scale (4, 4, 4) alone, in the stages that have two',
        paper='224 G for 4 x 1 views, 21.8 M, top-1 78.4, top-5 93.4',
        model=dict(
            backbone=dict(
                pyramid_sizes=(
                    ((4, 4, 4), ),
                    ((4, 4, 4), ),
                    ((8, 7, 7), ),
                    ())))),
    dualformer_table03_lg2=dict(
        row='LG_2: the scale (8, 7, 7) alone, in every stage',
        paper='232 G for 4 x 1 views, 21.8 M, top-1 79.3, top-5 93.9',
        model=dict(
            backbone=dict(
                pyramid_sizes=(
                    ((8, 7, 7), ),
                    ((8, 7, 7), ),
                    ((8, 7, 7), ),
                    ((8, 7, 7), ))))),
    dualformer_table03_lg_lg_ll_ll=dict(
        row='(LG, LG, LL, LL)',
        paper='244 G for 4 x 1 views, 21.8 M, top-1 79.3, top-5 94.0',
        model=dict(backbone=dict(pattern=('LG', 'LG', 'LL', 'LL')))),
    dualformer_table03_ll_ll_lg_lg=dict(
        row='(LL, LL, LG, LG)',
        paper='236 G for 4 x 1 views, 21.7 M, top-1 78.8, top-5 93.5',
        model=dict(backbone=dict(pattern=('LL', 'LL', 'LG', 'LG')))),
    dualformer_table03_ll_ll_ll_ll=dict(
        row='(LL, LL, LL, LL)',
        paper='244 G for 4 x 1 views, 21.7 M, top-1 78.4, top-5 93.3',
        model=dict(backbone=dict(pattern=('LL', 'LL', 'LL', 'LL')))))
