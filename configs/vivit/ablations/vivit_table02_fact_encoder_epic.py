# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Model 2 on EPIC-Kitchens-100. Paper: action 43.7. With all the
# regularization of Table 3; starts from a model of Kinetics-400.
_base_ = '../../vivit_l16x2_fact_encoder_epic.py'

model = dict(backbone=dict(arch='B'), cls_head=dict(in_channels=768))
