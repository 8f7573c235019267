# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5: pooling of the pyramid.
table = 'Table 5'
base = 'dualformer_tiny_k400'

rows = dict(
    dualformer_table05_avgpool=dict(
        row='AvgPool',
        paper='59 G a view, 21.8 M, top-1 78.7',
        note="The last stage is pooled to (8, 7, 7) as well, because this "
        "gives the paper's cost.",
        model=dict(
            backbone=dict(
                pooling='avg',
                pyramid_sizes=(
                    ((8, 7, 7), (4, 4, 4)),
                    ((8, 7, 7), (4, 4, 4)),
                    ((8, 7, 7), ),
                    ((8, 7, 7), ))))),
    dualformer_table05_conv=dict(
        row='Conv',
        paper='61 G a view, 27.6 M, top-1 79.5',
        note="The last stage is pooled to (8, 7, 7) as well, because this "
        "gives the paper's cost.",
        model=dict(
            backbone=dict(
                pooling='conv',
                pyramid_sizes=(
                    ((8, 7, 7), (4, 4, 4)),
                    ((8, 7, 7), (4, 4, 4)),
                    ((8, 7, 7), ),
                    ((8, 7, 7), ))))))
