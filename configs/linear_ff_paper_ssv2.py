# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The paper's network on Something-Something v2, with shifts over whole windows
# (A.3) and the settings of Table 10.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/datasets/ssv2.py',
    '_base_/schedules/sgd_35e.py', '_base_/default_runtime.py'
]

# Where the paper differs from the released code: ViT patches of stride 16 with
# positions, a plain MLP, space before time, plain ReLU, both shifts in each
# attention.
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
        temporal_shift=dict(_delete_=True, mode='window', size=4, alpha=0.5),
        spatial_shift=dict(_delete_=True, mode='cross', size=1, alpha=0.5)))

# The paper's only augmentations are AutoAugment and the jitter of Table 10.
train_pipeline = [
    dict(type='DecordInit'),
    dict(type='SegmentSampleFrames', clip_len=16),
    dict(type='DecordDecode'),
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(type='RandomRescale', scale_range=(256, 320)),
    dict(type='RandomCrop', size=224),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# The paper does not mention Nesterov's momentum.
optim_wrapper = dict(
    optimizer=dict(lr=0.035, nesterov=False, weight_decay=4e-4))
_base_.param_scheduler[0].start_factor = 0.003 / 0.035
