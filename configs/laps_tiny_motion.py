# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS with a small Visformer that trains in minutes on a CPU, on the dataset
# of tools/data/motion/make_motion.py.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/motion.py',
    '_base_/schedules/adamw_8e_motion.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            stem_channels=16,
            embed_dims=64,
            depths=(1, 3, 2),
            num_heads=4),
        img_size=64,
        init_std=0.1),
    cls_head=dict(num_classes=8, in_channels=128, label_smooth_eps=0))
