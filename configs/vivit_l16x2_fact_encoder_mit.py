# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 2, on Moments in Time. The paper, Table 5c: top-1 38.5,
# top-5 64.1; 988 G multiply-accumulates per view.
_base_ = [
    '_base_/models/vivit_l16x2_fact_encoder.py',
    '_base_/datasets/moments_in_time.py', '_base_/pipelines/vivit_kinetics.py',
    '_base_/schedules/sgd_10e_vivit.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)
