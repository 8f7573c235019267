# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 4, on Kinetics-400. The paper, Table 2: top-1 76.3, 277.1
# GFLOPs per view.
_base_ = 'vivit_b16x2_joint_k400.py'

model = dict(backbone=dict(model='fact_dot'))
