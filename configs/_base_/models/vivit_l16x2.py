# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
_base_ = 'vivit_b16x2.py'

model = dict(
    backbone=dict(arch='L'), cls_head=dict(in_channels=1024))
