# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Recipe of XViT's authors for Kinetics-400 (1adrianb/video-transformers):
# xvit_k400.py with 16 frames shifted as two clips of 8, and 1 x 3 views.
_base_ = 'xvit_k400.py'

model = dict(backbone=dict(temporal_shift=dict(segment_frames=8)))

_base_.test_pipeline[1].num_clips = 1
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
