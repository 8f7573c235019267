# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1: initialization of tubelet filters.
table = 'Table 1'
base = 'vivit_b16x2_joint_k400'

rows = dict(
    vivit_table01_central_frame=dict(
        row='tubelets, central frame',
        paper='top-1 79.2',
        note='Tubelets of four frames give as many tokens as eight frames.',
        model=dict(backbone=dict(tubelet_frames=4, patch_init='central'))),
    vivit_table01_uniform_sampling=dict(
        row='uniform frame sampling',
        paper='top-1 78.5',
        note='The tokens are patches of eight of the 32 frames.',
        model=dict(backbone=dict(tubelet_frames=1, sampled_frames=8))))
