# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# xvit_ssv2 as a stream: keys and values come from the previous frame only, and
# the head averages the class tokens of the frames. Not from the paper, and not
# trained here.
_base_ = 'xvit_ssv2.py'

model = dict(
    backbone=dict(causal=True),
    cls_head=dict(
        _delete_=True,
        type='LinearVideoTransformerHead',
        num_classes=174,
        in_channels=768,
        average_clips='score'))
