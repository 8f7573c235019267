# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, XViT, + FF. Paper: top-1 65.94. Also the cell + NA + FF: XViT's
# temporal shift is its neighborhood association.
_base_ = '../../xvit_ssv2.py'

model = dict(
    backbone=dict(
        fixation=dict(mode='cooperative', inputs='qkv', shared=True)))
