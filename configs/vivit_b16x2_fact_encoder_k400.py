# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 2, on Kinetics-400. The paper, Table 2: top-1 78.8, 284.4
# GFLOPs per view; the released model: 78.4 at 4 x 3 views.
_base_ = 'vivit_b16x2_joint_k400.py'

model = dict(backbone=dict(model='fact_encoder', num_temporal_layers=4))
optim_wrapper = dict(optimizer=dict(lr=0.05))
