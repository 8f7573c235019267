# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_b16_causal_k400 with softmax attention to the latest 16 frames in the
# temporal encoder. Not from the paper, and not trained here.
_base_ = 'vivit_b16_causal_k400.py'

model = dict(
    backbone=dict(
        causal=dict(
            attention=dict(
                _delete_=True, type='SoftmaxAttention', window_frames=16))))
