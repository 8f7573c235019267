# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on THUMOS'14, Laplace kernel. Paper, Table 1: 71.2 mAP with these
# features; the authors' page has 70.8 for this kernel.
_base_ = [
    '_base_/models/testra.py', '_base_/datasets/thumos14_features.py',
    '_base_/schedules/adam_25e_testra.py', '_base_/default_runtime.py'
]
