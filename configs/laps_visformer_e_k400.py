# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model E: 32 x 360 x 360. Paper, Table 4: top-1 80.03, top-5 94.48, 434.0 G
# multiply-accumulates a view, 40.2 M parameters.
_base_ = 'laps_visformer_h_k400.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(scale_range=(360, 540))
train_pipeline[4].update(size=360)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (val_pipeline, test_pipeline):
    pipeline[3].update(scale=(-1, 360))
    pipeline[4].update(crop_size=360)
del pipeline

model = dict(backbone=dict(img_size=360))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
