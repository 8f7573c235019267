# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Trains in minutes on two CPU cores, on the dataset of
# tools/data/motion/make_motion.py. Models 3 and 4: --cfg-options
# model.backbone.model=fact_attention or fact_dot. Model 2:
# vivit_tiny_fact_encoder_motion.py.
_base_ = [
    '_base_/models/vivit_b16x2.py', '_base_/datasets/motion.py',
    '_base_/schedules/adamw_8e_motion.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        num_frames=8,
        img_size=64,
        embed_dims=96,
        num_layers=2,
        num_heads=4,
        patch_init='random',
        init_std=0.1,
        embed_init_std=0.3),
    cls_head=dict(num_classes=8, in_channels=96, init_std=0.02))
