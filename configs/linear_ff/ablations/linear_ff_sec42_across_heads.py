# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 4.2, one map of all D channels. Paper: its Eqs. 4 and 5, with no figure
# of their own. They ignore heads; the 52.2 M of the default model leave no room
# for this gate.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(across_heads=True)))
