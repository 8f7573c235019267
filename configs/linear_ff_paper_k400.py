# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The paper's network on Kinetics-400, with shifts over whole windows (Sec.
# A.3) and the settings of Table 10. The paper does not mention mixup and label
# smoothing; we use the settings of linear_ff_k400.py.
_base_ = 'linear_ff_k400.py'

model = dict(
    backbone=dict(
        patch_stride=16,
        patch_padding=0,
        with_patch_norm=False,
        with_pos_embed=True,
        with_dwconv=False,
        order='space_time',
        attention=dict(offset=0.),
        shift_placement='both',
        temporal_shift=dict(_delete_=True, mode='window', size=8, alpha=0.5),
        spatial_shift=dict(_delete_=True, mode='cross', size=4, alpha=0.5)))
