# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, H/14x2 on Kinetics-600. Paper: top-1 85.8, top-5 96.5. Its weights,
# and those of JFT from which it starts, are not published.
_base_ = '../../vivit_l16x2_fact_encoder_k600.py'

model = dict(
    backbone=dict(
        model='joint', num_temporal_layers=None, arch='H', patch_size=14),
    cls_head=dict(in_channels=1280))
