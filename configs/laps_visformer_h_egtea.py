# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (H) fine-tuned on EGTEA Gaze+, split 1: 32 x 320 x 320. Paper, Table 6:
# top-1 66.07. It starts from laps_visformer_h_k400.py: load_from or init_cfg
# of the backbone.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/egtea_laps.py',
    '_base_/schedules/sgd_36e_laps.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import change

clip = dict(clip_len=32, frame_interval=8)
train_pipeline = change(
    _base_.train_pipeline, SpreadSampleFrames=clip,
    RandomRescale=dict(scale_range=(320, 480)), RandomCrop=dict(size=320))
val_pipeline = change(
    _base_.val_pipeline, SpreadSampleFrames=clip,
    Resize=dict(scale=(-1, 320)), CenterCrop=dict(crop_size=320))
test_pipeline = change(
    _base_.test_pipeline, SpreadSampleFrames=clip,
    Resize=dict(scale=(-1, 320)), ThreeCrop=dict(crop_size=320))

model = dict(
    backbone=dict(num_frames=32, img_size=320, pyramid=(1, 2, 3, 4, 5)),
    cls_head=dict(num_classes=106))
train_dataloader = dict(
    batch_size=4, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=4, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.036))
auto_scale_lr = dict(base_batch_size=32)
