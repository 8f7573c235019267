# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Model 4 on EPIC-Kitchens-100. Paper: action 39.5.
_base_ = 'vivit_table02_joint_epic.py'

model = dict(backbone=dict(model='fact_dot'))
