# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Probe of V-JEPA 2 ViT-g on Something-Something v2, with 64 frames of 384 x
# 384. The authors: top-1 77.3 at 2 x 3 views.
_base_ = 'vjepa2_l_ssv2.py'

num_frames = 64
img_size = 384

model = dict(
    backbone=dict(arch='g', num_frames=num_frames),
    cls_head=dict(in_channels=1408))

_base_.train_pipeline[1].clip_len = num_frames
_base_.train_pipeline[1].frame_interval = 2
_base_.train_pipeline[5].scale = (img_size, img_size)
_base_.val_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].frame_interval = 2
_base_.val_pipeline[3].scale = (-1, img_size)
_base_.val_pipeline[4].crop_size = img_size
_base_.test_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].frame_interval = 2
_base_.test_pipeline[3].scale = (-1, img_size)
_base_.test_pipeline[4].crop_size = img_size
train_dataloader = dict(
    batch_size=2, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(
    batch_size=2, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
