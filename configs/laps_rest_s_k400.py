# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (RS), on ResT-S: 8 x 224 x 224. Paper, Table 3: top-1 69.72, 17.6 G
# multiply-accumulates per view, 13.4 M parameters.
_base_ = 'laps_visformer_k400.py'

# ResT-S, as in the released code; see the class ResT. Set init_cfg of the
# backbone to image weights.
model = dict(
    backbone=dict(
        _delete_=True,
        type='ResT',
        arch='small',
        num_frames=8,
        attention='leap',
        shift='periodic',
        pyramid=(1, 2, 3),
        shift_fraction=1 / 8,
        shift_first='next'),
    cls_head=dict(in_channels=512))

_base_.train_pipeline[3].scale_range = (224, 320)
train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.09023))
