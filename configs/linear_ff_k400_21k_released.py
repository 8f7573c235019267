# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The released recipe for Kinetics-400 from ImageNet-21k with the spatial shift
# at distance 4 ("k400_21k"): 16 frames shifted as two clips of 8, 40 epochs.
# Which neighbors: linear_ff_k400.py's four; the newest released code takes
# eight whatever its options say.
_base_ = 'linear_ff_k400.py'

from mmvidattn.utils.config import change

model = dict(backbone=dict(temporal_shift=dict(segment_frames=8)))

optim_wrapper = dict(optimizer=dict(weight_decay=1e-5))
param_scheduler = change(
    _base_.param_scheduler, WarmupCosineLR=dict(end=40))
train_cfg = dict(max_epochs=40)
