# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# AdamW with a cosine schedule to zero after an epoch of warm-up, for 16 clips
# per batch. Our choice: no paper trains this model.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(
        type='WarmupCosineLR',
        warmup=1,
        begin=0,
        end=20,
        by_epoch=True,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=20, val_interval=5)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=16)
