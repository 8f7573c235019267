# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Detection of actions on THUMOS'14 from pixels, with one causal network and
# a state of constant size. Not from a paper, and not trained here.
_base_ = [
    '_base_/models/linear_ff_causal_online.py',
    '_base_/datasets/thumos14_videos.py', '_base_/pipelines/video_stream.py',
    '_base_/schedules/adamw_20e_causal.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)

model = dict(
    backbone=dict(encoder=dict(with_cp=True)),
    cls_head=dict(loss_cls=dict(ignore_index=21)))
