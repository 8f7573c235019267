# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS in miniature, minutes on a CPU: a small Visformer on the set that
# tools/data/motion/make_motion.py writes.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/motion.py',
    '_base_/default_runtime.py'
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

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=20),
    dict(
        type='CosineAnnealingLR',
        T_max=8,
        eta_min=0,
        by_epoch=True,
        begin=0,
        end=8,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=8, val_interval=2)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=16)
randomness = dict(seed=0)
