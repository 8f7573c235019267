# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, + random augment. Paper: action 41.1. It replaces the color
# jitter, as in the complete recipe (preprint, Table 7, and released).
_base_ = 'vivit_table03_label_smoothing.py'

model = dict(cls_head=dict(label_smooth_eps=0.))
