# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model B: 8 x 320 x 320. Paper, Table 3: top-1 77.56, 86.4 G
# multiply-accumulates per view, 40.0 M parameters.
_base_ = 'laps_visformer_k400.py'

from mmvidattn.utils.config import derive

derive(
    _base_,
    img_size=320,
    train_pipeline=dict(RandomRescale=dict(scale_range=(320, 480))))



train_dataloader = dict(batch_size=16)
val_dataloader = dict(batch_size=16)

optim_wrapper = dict(optimizer=dict(lr=0.036))
auto_scale_lr = dict(base_batch_size=128)
