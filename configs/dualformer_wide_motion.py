# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Teacher for dualformer_tiny_tl_motion.py, 1.5 times as wide.
_base_ = 'dualformer_tiny_motion.py'

model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=72,
            num_layers=(2, 2, 2, 2),
            num_heads=(3, 6, 12, 24))),
    cls_head=dict(in_channels=576))
