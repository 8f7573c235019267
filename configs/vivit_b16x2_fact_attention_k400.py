# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 3, on Kinetics-400. The paper, Table 2: top-1 77.4, 372.3
# GFLOPs per view.
_base_ = [
    '_base_/models/vivit_b16x2.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/vivit_kinetics.py', '_base_/schedules/sgd_30e_vivit.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


model = dict(backbone=dict(model='fact_attention', order='time_space'))
