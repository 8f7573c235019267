# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model H: 32 frames. Paper, Table 7: top-1 65.67, top-5 90.27, 530.2 G
# multiply-accumulates a view.
_base_ = 'linear_ff_ssv2.py'

train_pipeline = _base_.train_pipeline
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (train_pipeline, val_pipeline, test_pipeline):
    pipeline[1].update(clip_len=32)
del pipeline

model = dict(backbone=dict(num_frames=32))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
