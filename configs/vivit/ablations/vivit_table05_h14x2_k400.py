# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, H/14x2 on Kinetics-400. Paper: top-1 84.9, top-5 95.8, 47.77 T of
# twelve views. Model 1, judging by that cost. Its weights, and those of JFT
# from which it starts, are not published.
_base_ = '../../vivit_l16x2_joint_k400.py'

model = dict(
    backbone=dict(arch='H', patch_size=14), cls_head=dict(in_channels=1280))
