# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT on Kinetics, as released: SGD with momentum, no weight decay, 2.5
# epochs of linear warm-up, then a cosine schedule to zero, updated at each
# iteration. The learning rate is for 64 clips per batch.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=0.),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=0.001,
        by_epoch=True,
        begin=0,
        end=2.5,
        convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR',
        T_max=27.5,
        eta_min=0,
        by_epoch=True,
        begin=2.5,
        end=30,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=30, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=64)
