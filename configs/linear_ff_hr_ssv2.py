# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model HR: 336 x 336. Paper, Table 7: top-1 65.85, top-5 89.97, 573.3 G
# multiply-accumulates a view. The jitter is that of 224, scaled by 1.5.
_base_ = 'linear_ff_ssv2.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(scale_range=(384, 480))
train_pipeline[4].update(size=336)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (val_pipeline, test_pipeline):
    pipeline[3].update(scale=(-1, 336))
    pipeline[4].update(crop_size=336)
del pipeline

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
