# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# As in the released code: 18 epochs of SGD without warm-up and weight decay,
# ten batches per step, and after each epoch BatchNorm statistics from 200
# batches.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='SGD', lr=0.2, momentum=0.9, weight_decay=0),
    accumulative_counts=10,
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(
        type='MultiStepLR',
        milestones=[10, 15],
        gamma=0.1,
        by_epoch=True,
        begin=0,
        end=18)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=18, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
custom_hooks = [dict(type='PreciseBNHook', num_batches=200)]
auto_scale_lr = dict(enable=False, base_batch_size=320)
