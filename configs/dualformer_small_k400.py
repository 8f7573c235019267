# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-S on Kinetics-400, from an ImageNet-1k image model. The paper:
# top-1 80.3, top-5 94.5 without token labels (Table 9) at 4 x 1 views, 636 G
# multiply-accumulates for the four views.
_base_ = 'dualformer_tiny_k400.py'

model = dict(
    backbone=dict(arch='small', drop_path_rate=0.2),
    cls_head=dict(in_channels=768))

_base_.param_scheduler[0].end = 2.5
