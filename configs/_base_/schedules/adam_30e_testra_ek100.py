# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on EPIC-Kitchens-100, as released: 30 epochs, 32 windows per batch.
_base_ = 'adam_25e_testra.py'

optim_wrapper = dict(optimizer=dict(lr=5e-5, weight_decay=1e-4))
param_scheduler = dict(warmup=5, end=30)
train_cfg = dict(max_epochs=30)
auto_scale_lr = dict(base_batch_size=32)
