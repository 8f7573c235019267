# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_tiny_motion.py with linear attention and feature fixation instead of
# softmax attention.
_base_ = 'vivit_tiny_motion.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LinearAttention', kernel='relu',
            offset='auto'),
        fixation=dict(mode='cooperative', inputs='qkv', shared=True)))
