# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# A small DualFormer, minutes on two CPU cores, on the set that
# tools/data/motion/make_motion.py writes.
_base_ = [
    '_base_/models/dualformer.py', '_base_/datasets/motion.py',
    '_base_/default_runtime.py'
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

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=20),
    dict(
        type='CosineAnnealingLR',
        T_max=6,
        eta_min=0,
        by_epoch=True,
        begin=0,
        end=6,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=6, val_interval=2)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=16)
randomness = dict(seed=0)
