# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The probes of V-JEPA 2: AdamW for 256 videos per batch and a cosine schedule
# to zero from the first step, in half precision. The authors train 20 probes
# side by side, with rates from 1e-4 to 5e-3 and weight decays from 0.01 to
# 0.8, and report the best one; these are values from the middle.
optim_wrapper = dict(
    type='AmpOptimWrapper',
    dtype='bfloat16',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.1))
param_scheduler = [
    dict(
        type='CosineAnnealingLR',
        T_max=20,
        eta_min=0,
        by_epoch=True,
        begin=0,
        end=20,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=20, val_interval=2)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=256)
