# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra and LSTR on THUMOS'14 and TVSeries, as released: Adam with L2 decay, a
# cosine schedule over 25 epochs, multiplied by a warm-up from 0.3 over the
# first 10. The learning rate is for 16 windows per batch.
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='Adam', lr=7e-5, weight_decay=5e-5))
param_scheduler = dict(
    type='WarmupCosineLR',
    warmup=10,
    start_factor=0.3,
    begin=0,
    end=25,
    by_epoch=True,
    convert_to_iter_based=True)
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=25, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=16)
