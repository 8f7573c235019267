# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, TokShift-L (HR): 8 x 384 x 384. Paper: top-1 96.80.
_base_ = 'laps_table05_tokshift_ucf101.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(scale_range=(384, 616))
train_pipeline[4].update(size=384)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (val_pipeline, test_pipeline):
    pipeline[3].update(scale=(-1, 384))
    pipeline[4].update(crop_size=384)
del pipeline

model = dict(
    backbone=dict(arch='large', img_size=384),
    cls_head=dict(in_channels=1024))
train_dataloader = dict(
    batch_size=4, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=4, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.02))
auto_scale_lr = dict(base_batch_size=32)
