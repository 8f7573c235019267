# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ResT-S with leap attention and periodic shift, as in the released code; see
# the class ResT. Set init_cfg of the backbone to image weights.
_base_ = 'laps_visformer.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='ResT',
        arch='small',
        num_frames=None,
        attention='leap',
        shift='periodic',
        pyramid=(1, 2, 3),
        shift_fraction=1 / 8,
        shift_first='next'),
    cls_head=dict(in_channels=512))
