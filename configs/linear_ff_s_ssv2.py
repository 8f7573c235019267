# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model S: 8 frames. Paper, Table 7: top-5 88.68, 129.1 G
# multiply-accumulates a view (its top-1 is missing from the text).
_base_ = 'linear_ff_ssv2.py'

train_pipeline = _base_.train_pipeline
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (train_pipeline, val_pipeline, test_pipeline):
    pipeline[1].update(clip_len=8)
del pipeline

model = dict(backbone=dict(num_frames=8))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
