# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ResT-S with leap attention and periodic shift, as the released code has it:
# see ResT. It is meant to start from images: init_cfg of the backbone.
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
