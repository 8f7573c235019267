# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Recipe of XViT's authors for Kinetics-600 (1adrianb/video-transformers):
# xvit_k600.py with 16 frames shifted as two clips of 8.
_base_ = 'xvit_k600.py'

model = dict(backbone=dict(temporal_shift=dict(segment_frames=8)))
