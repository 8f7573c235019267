# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The released Kinetics-400 configuration to the letter: a gate each for Q and
# K, 16 frames shifted as two clips of 8, the eight-neighbor shift, 64 clips
# a batch (8 GPUs), 40 epochs.
_base_ = 'linear_ff_k400.py'

from mmvidattn.utils.config import change

model = dict(
    backbone=dict(
        fixation=dict(shared=False),
        temporal_shift=dict(segment_frames=8),
        spatial_shift=dict(_delete_=True, mode='eight', size=1)))
train_dataloader = dict(batch_size=8)

optim_wrapper = dict(optimizer=dict(weight_decay=1e-5))
param_scheduler = change(
    _base_.param_scheduler, CosineAnnealingLR=dict(T_max=35, end=40))
train_cfg = dict(max_epochs=40)
auto_scale_lr = dict(base_batch_size=64)
