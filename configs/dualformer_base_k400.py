# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-B on Kinetics-400. The paper, Table 1: top-1 81.1, top-5 95.0 with
# ImageNet-1k start weights, 82.9 and 95.5 with ImageNet-21k, at 4 x 1 views,
# 1072 G multiply-accumulates for the four views.
_base_ = 'dualformer_tiny_k400.py'

model = dict(
    backbone=dict(arch='base', drop_path_rate=0.3),
    cls_head=dict(in_channels=1024))

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
_base_.param_scheduler[0].end = 2.5
