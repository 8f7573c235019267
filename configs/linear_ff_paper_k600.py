# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The paper's network on Kinetics-600, with shifts over whole windows (Sec.
# A.3) and the settings of Table 10. The paper does not mention flips, mixup
# and label smoothing; we use the settings of linear_ff_k600.py.
_base_ = 'linear_ff_k600.py'

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

# Table 10 resizes frames to short sides of 256 to 320, like on
# Something-Something.
train_pipeline = [
    dict(type='DecordInit'),
    dict(type='SlowFastSampleFrames', clip_len=16, frame_interval=16),
    dict(type='DecordDecode'),
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(type='RandomRescale', scale_range=(256, 320)),
    dict(type='RandomCrop', size=224),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# The paper does not mention Nesterov's momentum.
optim_wrapper = dict(optimizer=dict(nesterov=False))
