# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. AdamW for 64
# clips per batch; linear warm-up, then a cosine schedule to zero, updated at
# each epoch. The released recipe also lists norms without decay, but mmengine
# only applies the longest matching key, so the groups below are the effective
# ones. The position encoding has ten times the learning rate of the rest of
# the backbone.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='AdamW', lr=1e-3, betas=(0.9, 0.999), weight_decay=0.02),
    paramwise_cfg=dict(
        custom_keys={
            'backbone': dict(lr_mult=0.1),
            'backbone.pegs': dict(lr_mult=1., decay_mult=0.)
        }))
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=0.1,
        by_epoch=True,
        begin=0,
        end=2.5,
        convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR',
        T_max=30,
        eta_min=0,
        by_epoch=True,
        begin=0,
        end=30)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=30, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=64)
