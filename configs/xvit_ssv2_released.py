# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Recipe of XViT's authors for Something-Something v2
# (1adrianb/video-transformers): xvit_ssv2.py with 2 x 3 views. The repository
# of the linear video transformer trains the same with 32 clips per batch.
_base_ = 'xvit_ssv2.py'

from mmvidattn.utils.config import derive

derive(
    _base_,
    test_pipeline=dict(SegmentSampleFrames=dict(num_clips=2)))
