# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 3, on Kinetics-400. The paper, Table 2: top-1 77.4, 372.3
# GFLOPs per view.
_base_ = 'vivit_b16x2_joint_k400.py'

model = dict(backbone=dict(model='fact_attention', order='time_space'))
