# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# xvit_ssv2.py with linear attention and feature fixation instead of softmax
# attention.
_base_ = 'xvit_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LinearAttention', kernel='relu',
            offset='auto'),
        fixation=dict(mode='cooperative', inputs='qkv', shared=True)))
