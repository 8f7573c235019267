# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Small DualFormer that trains in minutes on two CPU cores, on the dataset of
# tools/data/motion/make_motion.py.
_base_ = [
    '_base_/models/dualformer.py', '_base_/datasets/motion.py',
    '_base_/schedules/adamw_8e_motion.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=48,
            num_layers=(2, 2, 2, 2),
            num_heads=(2, 4, 8, 16)),
        num_frames=8,
        img_size=64,
        patch_size=(2, 8, 8),
        window_size=(4, 4, 4),
        pyramid_sizes=(((4, 4, 4), ), (), (), ()),
        drop_path_rate=0.,
        init_std=0.1),
    cls_head=dict(
        num_classes=8, in_channels=384, dropout_ratio=0.1, init_std=0.05))

optim_wrapper = dict(optimizer=dict(lr=2e-4))
_base_.param_scheduler[1].T_max = 6
_base_.param_scheduler[1].end = 6
train_cfg = dict(max_epochs=6)
