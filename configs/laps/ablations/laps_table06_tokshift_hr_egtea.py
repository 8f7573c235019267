# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, TokShift (HR): 8 x 384 x 384. Paper: top-1 65.77.
_base_ = 'laps_table06_tokshift_egtea.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(scale_range=(384, 616))
train_pipeline[4].update(size=384)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (val_pipeline, test_pipeline):
    pipeline[3].update(scale=(-1, 384))
    pipeline[4].update(crop_size=384)
del pipeline

model = dict(backbone=dict(img_size=384))
train_dataloader = dict(
    batch_size=12, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=12, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.06))
auto_scale_lr = dict(base_batch_size=96)
