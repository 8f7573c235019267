# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# linear_ff_ssv2 as a stream: each frame attends to itself and to all previous
# frames, with decay. Not from the paper, and not trained here. Start from a
# checkpoint of linear_ff_ssv2 with
# model.backbone.init_cfg.checkpoint=CHECKPOINT.
_base_ = 'linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        pattern='causal', decay=dict(half_life=(4, 64), learned=True)))
