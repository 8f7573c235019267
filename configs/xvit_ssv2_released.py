# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# XViT's own recipe for Something-Something v2 (1adrianb/video-transformers):
# that of xvit_ssv2.py, with 2 x 3 views. The linear video transformer's
# repository trains the same with 32 clips a batch.
_base_ = 'xvit_ssv2.py'

from mmvidattn.utils.config import derive

derive(
    _base_,
    test_pipeline=dict(SegmentSampleFrames=dict(num_clips=2)))
