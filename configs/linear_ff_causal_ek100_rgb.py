# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Anticipation on EPIC-Kitchens-100 from pixels, with one causal network and
# a state of constant size. Not from a paper, and not trained here.
_base_ = [
    '_base_/models/linear_ff_causal_online.py',
    '_base_/datasets/ek100_videos.py', '_base_/pipelines/video_stream.py',
    '_base_/schedules/adamw_20e_causal.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)

model = dict(
    backbone=dict(num_anticipation_tokens=2, encoder=dict(with_cp=True)),
    # With the background (0).
    cls_head=dict(
        num_verbs=98,
        num_nouns=301,
        loss_cls=dict(ignore_index=0),
        score='logit'))
