# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# SGD with Nesterov momentum, five epochs of linear warm-up, then a cosine to
# zero, stepped each iteration. The learning rate belongs to 32 clips a batch.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='SGD', lr=0.03, momentum=0.9, nesterov=True, weight_decay=1e-4))
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=0.1,
        by_epoch=True,
        begin=0,
        end=5,
        convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR',
        T_max=30,
        eta_min=0,
        by_epoch=True,
        begin=5,
        end=35,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=35, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=32)
