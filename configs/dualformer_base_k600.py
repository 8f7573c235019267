# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. DualFormer-B
# on Kinetics-600, from an ImageNet-21k image model. The paper, Table 1: top-1
# 85.2, top-5 96.6 at 4 x 1 views, 1072 G multiply-accumulates for the four.
# The learning rate follows the released code; the paper reports the same rate
# as for Kinetics-400.
_base_ = [
    '_base_/models/dualformer.py', '_base_/datasets/kinetics600.py',
    '_base_/pipelines/dualformer.py',
    '_base_/schedules/adamw_30e_dualformer.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


model = dict(
    backbone=dict(arch='base', drop_path_rate=0.3),
    cls_head=dict(in_channels=1024))

optim_wrapper = dict(optimizer=dict(lr=5e-4, weight_decay=0.05))
