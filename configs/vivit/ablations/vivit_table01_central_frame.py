# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, tubelets, central frame. Paper: top-1 79.2. Tubelets of four frames,
# as many tokens as eight frames have.
_base_ = '../../vivit_b16x2_joint_k400.py'

model = dict(backbone=dict(tubelet_frames=4, patch_init='central'))
