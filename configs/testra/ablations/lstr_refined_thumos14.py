# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LSTR with self-attention for the second stage of its encoder: 16 queries
# compress the long memory, two layers refine them. In the released code,
# ENC_MODULE: [[16, 1, True], [-1, 2, True]]. No figure of it is at hand.
_base_ = '../../lstr_thumos14.py'

model = dict(
    backbone=dict(
        encoder=[
            dict(num_queries=16, num_layers=1),
            dict(num_queries=None, num_layers=2)
        ]))
