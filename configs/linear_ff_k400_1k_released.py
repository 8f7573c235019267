# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The released recipe for Kinetics-400 from ImageNet-1k ("k400"):
# linear_ff_k400_21k_released.py for 35 epochs, with the same assumed gate and
# neighbors.
_base_ = 'linear_ff_k400_21k_released.py'

_base_.param_scheduler[0].end = 35
train_cfg = dict(max_epochs=35)
