# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 1, on Kinetics-400. The paper, Table 4: top-1 80.3, 1446
# GFLOPs per view; 1436 G multiply-accumulates.
_base_ = [
    '_base_/models/vivit_l16x2.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/vivit_kinetics.py', '_base_/schedules/sgd_30e_vivit.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)
