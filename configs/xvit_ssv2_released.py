# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Recipe of XViT's authors for Something-Something v2
# (1adrianb/video-transformers): xvit_ssv2.py with 2 x 3 views. The repository
# of the linear video transformer trains the same with 32 clips per batch.
_base_ = 'xvit_ssv2.py'

_base_.test_pipeline[1].num_clips = 2
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
