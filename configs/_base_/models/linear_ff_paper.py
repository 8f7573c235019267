# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Backbone options for models/linear_ff.py that follow the paper where the
# released code differs: ViT patches of stride 16 with positions, a plain MLP,
# space before time, plain ReLU, both shifts in each attention. The windows of
# the shifts depend on the dataset (Table 10).
paper_network = dict(
    patch_stride=16,
    patch_padding=0,
    with_patch_norm=False,
    with_pos_embed=True,
    with_dwconv=False,
    order='space_time',
    attention=dict(offset=0.),
    shift_placement='both')
