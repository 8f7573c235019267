# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, Swin. Paper: top-1 79.3.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(position='relative'))
