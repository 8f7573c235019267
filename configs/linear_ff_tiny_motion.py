# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The quickstart: minutes on two CPU cores, on the set that
# tools/data/motion/make_motion.py writes.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/datasets/motion.py',
    '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        num_frames=8,
        patch_frames=3,
        patch_stride=12,
        patch_padding=4,
        embed_dims=96,
        # One layer that sees both shifts in both of its attentions learns the
        # direction of motion in fewer steps than two as released.
        num_layers=1,
        shift_placement='both',
        num_heads=6,
        init_std=0.1,
        embed_init_std=0.5),
    cls_head=dict(
        num_classes=8, in_channels=96, hidden_dims=96, dropout_ratio=0.1))

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=4e-3, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=20),
    dict(
        type='CosineAnnealingLR',
        T_max=10,
        eta_min=0,
        by_epoch=True,
        begin=0,
        end=10,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=10, val_interval=5)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=16)
randomness = dict(seed=0)
