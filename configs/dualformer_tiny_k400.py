# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-T on Kinetics-400, from an ImageNet-1k image model. The paper:
# top-1 79.0, top-5 93.7 without token labels (Table 9) at 4 x 1 views, 240 G
# multiply-accumulates for the four views.
_base_ = [
    '_base_/models/dualformer.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/dualformer.py',
    '_base_/schedules/adamw_30e_dualformer.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import change, derive

derive(_base_)



param_scheduler = change(_base_.param_scheduler, LinearLR=dict(end=3))
