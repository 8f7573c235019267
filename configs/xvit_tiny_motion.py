# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Small XViT that trains in minutes on two CPU cores, on the dataset of
# tools/data/motion/make_motion.py. Each batch also contains its clips played
# backwards, which speeds up training, because the classes are pairs of a
# motion and its reversal.
_base_ = [
    '_base_/models/xvit.py', '_base_/datasets/motion.py',
    '_base_/schedules/adamw_8e_motion.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        num_frames=8,
        img_size=64,
        # With patches of 16, accuracy stays at chance for 600 updates.
        patch_size=32,
        embed_dims=96,
        num_layers=3,
        num_heads=4,
        temporal_shift=dict(divisor=2),
        init_std=0.1,
        embed_init_std=0.3),
    cls_head=dict(
        num_classes=8, in_channels=96, num_heads=4, hidden_dims=96,
        dropout_ratio=0., init_std=0.1),
    data_preprocessor=dict(
        blending=dict(
            type='AppendReversedClips',
            opposites=[1, 0, 3, 2, 5, 4, 7, 6])))

optim_wrapper = dict(optimizer=dict(lr=2e-3, betas=(0.9, 0.98)))
_base_.param_scheduler[0].end = 100
