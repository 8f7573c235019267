# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Means and
# standard deviations for the smaller datasets, as released. The Kinetics
# models that training starts from use different values.
_base_ = 'dualformer.py'

model = dict(
    # Kernels for 32 frames, as in the checkpoint.
    backbone=dict(num_frames=32, drop_path_rate=0.2),
    data_preprocessor=dict(mean=[104, 117, 128], std=[1, 1, 1]))
