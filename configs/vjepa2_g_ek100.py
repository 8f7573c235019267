# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Action anticipation with V-JEPA 2 ViT-g and frames of 384 x 384. The
# authors: recall@5 of actions 39.7, see vjepa2_l_ek100.py.
_base_ = 'vjepa2_l_ek100.py'

img_size = 384

model = dict(
    backbone=dict(arch='g'),
    neck=dict(in_channels=1408),
    cls_head=dict(in_channels=1408))

_base_.train_pipeline[5].scale = (img_size, img_size)
_base_.test_pipeline[3].scale = (-1, 438)
_base_.test_pipeline[4].crop_size = img_size
train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
test_dataloader = val_dataloader
