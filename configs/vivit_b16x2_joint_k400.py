# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-B/16x2, Model 1, on Kinetics-400. The paper, Table 2: top-1 80.0, 455.2
# GFLOPs per view; the released model: 79.9 at 4 x 3 views.
_base_ = [
    '_base_/models/vivit_b16x2.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/vivit_kinetics.py', '_base_/schedules/sgd_30e_vivit.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)
