# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Means and deviations of the smaller data sets, as released: they are not
# those of the Kinetics models from which the training starts.
_base_ = 'dualformer.py'

model = dict(
    # The kernels are those for 32 frames, as in the checkpoint.
    backbone=dict(num_frames=32, drop_path_rate=0.2),
    data_preprocessor=dict(mean=[104, 117, 128], std=[1, 1, 1]))
