# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Means and deviations of the smaller data sets, as released: they are not
# those of the Kinetics models from which the training starts.
_base_ = 'dualformer.py'

model = dict(
    backbone=dict(drop_path_rate=0.2),
    data_preprocessor=dict(mean=[104, 117, 128], std=[1, 1, 1]))
