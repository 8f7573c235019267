# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, uniform frame sampling. Paper: top-1 78.5. Patches of eight of the
# 32 frames.
_base_ = '../../vivit_b16x2_joint_k400.py'

model = dict(backbone=dict(tubelet_frames=1, sampled_frames=8))
