# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model B: 8 x 320 x 320. Paper, Table 3: top-1 77.56, 86.4 G
# multiply-accumulates a view, 40.0 M parameters.
_base_ = 'laps_visformer_k400.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(scale_range=(320, 480))
train_pipeline[4].update(size=320)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
for pipeline in (val_pipeline, test_pipeline):
    pipeline[3].update(scale=(-1, 320))
    pipeline[4].update(crop_size=320)
del pipeline

model = dict(backbone=dict(img_size=320))
train_dataloader = dict(
    batch_size=7, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=7, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.036))
auto_scale_lr = dict(base_batch_size=56)
