# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 2, on Kinetics-400. The released model: top-1 80.3 at
# 4 x 3 views. The paper, Table 5a, with 128 frames: 81.7 at 1 x 3. 988 G
# multiply-accumulates a view.
_base_ = [
    '_base_/models/vivit_l16x2_fact_encoder.py',
    '_base_/datasets/kinetics400_vivit.py',
    '_base_/schedules/sgd_30e_vivit.py', '_base_/default_runtime.py'
]
