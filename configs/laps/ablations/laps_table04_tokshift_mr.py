# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, TokShift (MR): 8 x 256 x 256. Paper: top-1 77.68, top-5 93.55,
# 175.8 G, 85.9 M; without the products of attention, as "ViT (Video)".
_base_ = '../../laps_vit_k400.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(scale_range=(256, 410))
train_pipeline[4].update(size=256)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (val_pipeline, test_pipeline):
    pipeline[3].update(scale=(-1, 256))
    pipeline[4].update(crop_size=256)
del pipeline

model = dict(
    backbone=dict(img_size=256, attention='2d', shift='token'))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
