# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The paper's network, where the released code departs from it: the ViT's
# grid of stride 16 with positions and a plain MLP, space before time, plain
# ReLU, both shifts in each attention. Their windows are a data set's (Table
# 10). Options of the backbone, to go with models/linear_ff.py.
paper_network = dict(
    patch_stride=16,
    patch_padding=0,
    with_patch_norm=False,
    with_pos_embed=True,
    with_dwconv=False,
    order='space_time',
    attention=dict(offset=0.),
    shift_placement='both')
