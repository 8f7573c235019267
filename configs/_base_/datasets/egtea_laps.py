# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EGTEA Gaze+ with the clips of LAPS.
_base_ = ['egtea.py', '../pipelines/laps.py']

train_pipeline = _base_.laps_train_pipeline
val_pipeline = _base_.laps_val_pipeline
test_pipeline = _base_.laps_test_pipeline

train_dataloader = dict(
    batch_size=40, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=40, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
