# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 1, on Kinetics-400. The paper, Table 4: top-1 80.3, 1446
# GFLOPs per view; 1436 G multiply-accumulates.
_base_ = 'vivit_b16x2_joint_k400.py'

model = dict(backbone=dict(arch='L'), cls_head=dict(in_channels=1024))
