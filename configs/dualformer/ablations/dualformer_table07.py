# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7: pooling in time between stages.
table = 'Table 7'
base = 'dualformer_tiny_k400'

rows = dict(
    dualformer_table07_1_1_2=dict(
        row='1, 1, 2',
        paper='216 G for 4 x 1 views, 22.3 M, top-1 79.2, top-5 93.9',
        model=dict(backbone=dict(temporal_pooling=(1, 1, 2)))),
    dualformer_table07_1_2_1=dict(
        row='1, 2, 1',
        paper='152 G for 4 x 1 views, 21.9 M, top-1 78.8, top-5 93.5',
        note="The pyramids have the default kernels, because this gives "
        "the paper's cost.",
        model=dict(
            backbone=dict(
                temporal_pooling=(1, 2, 1),
                pyramid_sizes=(
                    ((8, 7, 7), (4, 4, 4)),
                    ((8, 7, 7), (4, 4, 4)),
                    ((4, 7, 7), ),
                    ())))),
    dualformer_table07_2_1_1=dict(
        row='2, 1, 1',
        paper='136 G for 4 x 1 views, 21.8 M, top-1 78.7, top-5 93.5',
        note="The pyramids have the default kernels, because this gives "
        "the paper's cost.",
        model=dict(
            backbone=dict(
                temporal_pooling=(2, 1, 1),
                pyramid_sizes=(
                    ((8, 7, 7), (4, 4, 4)),
                    ((4, 7, 7), (2, 4, 4)),
                    ((4, 7, 7), ),
                    ())))),
    dualformer_table07_patch4=dict(
        row='1, 1, 1 of patches (4, 4, 4)',
        paper='112 G for 4 x 1 views, 21.8 M, top-1 78.5, top-5 93.3',
        note="The pyramids have the default kernels, because this gives "
        "the paper's cost.",
        model=dict(
            backbone=dict(
                patch_size=(4, 4, 4),
                pyramid_sizes=(
                    ((4, 7, 7), (2, 4, 4)),
                    ((4, 7, 7), (2, 4, 4)),
                    ((4, 7, 7), ),
                    ())))))
