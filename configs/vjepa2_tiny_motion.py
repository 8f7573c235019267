# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Trains in minutes on two CPU cores, on the dataset of
# tools/data/motion/make_motion.py. With 2.1:
#     --cfg-options model.backbone.version=2.1
_base_ = [
    '_base_/models/vjepa2.py', '_base_/datasets/motion.py',
    '_base_/schedules/adamw_8e_motion.py', '_base_/default_runtime.py'
]

model = dict(
    freeze=None,
    pool_clips=1,
    backbone=dict(
        num_frames=8,
        embed_dims=96,
        num_layers=2,
        num_heads=4,
        mlp_dims=384,
        init_std=0.1),
    cls_head=dict(
        num_classes=8,
        in_channels=96,
        num_heads=4,
        num_layers=1))
