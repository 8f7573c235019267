# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Released recipe of ViViT-L/16x2, Model 2, on Something-Something v2, from a
# Kinetics or ImageNet model. It flips clips at random (the paper's Table 7),
# although many classes name a direction.
_base_ = [
    '_base_/models/vivit_l16x2_fact_encoder.py', '_base_/datasets/ssv2.py',
    '_base_/pipelines/vivit_ssv2.py', '_base_/schedules/sgd_35e_vivit.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


model = dict(
    backbone=dict(drop_path_rate=0.3),
    cls_head=dict(label_smooth_eps=0.3),
    data_preprocessor=dict(
        blending=dict(
            type='MixupBlending', num_classes=_base_.num_classes,
            alpha=0.3)))
train_dataloader = dict(batch_size=8)
