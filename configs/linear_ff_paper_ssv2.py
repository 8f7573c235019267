# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The paper's network, where the released code departs from it: the ViT's
# grid of stride 16 with positions and a plain MLP, space before time, plain
# ReLU, both shifts in each attention over whole windows (A.3, Table 10).
_base_ = [
    '_base_/models/linear_ff.py', '_base_/datasets/ssv2.py',
    '_base_/schedules/sgd_35e_paper.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        patch_stride=16,
        patch_padding=0,
        with_patch_norm=False,
        with_pos_embed=True,
        with_dwconv=False,
        order='space_time',
        attention=dict(offset=0.),
        temporal_shift=dict(
            _delete_=True, mode='window', size=4, alpha=0.5),
        spatial_shift=dict(_delete_=True, mode='cross', size=1, alpha=0.5),
        shift_placement='both'))
