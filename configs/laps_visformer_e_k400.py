# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model E: 32 x 360 x 360. Paper, Table 4: top-1 80.03, top-5 94.48,
# 434.0 G multiply-accumulates per view, 40.2 M parameters.
_base_ = 'laps_visformer_h_k400.py'

from mmvidattn.utils.config import derive

derive(
    _base_,
    img_size=360,
    train_pipeline=dict(RandomRescale=dict(scale_range=(360, 540))))



train_dataloader = dict(batch_size=3)
val_dataloader = dict(batch_size=3)

auto_scale_lr = dict(base_batch_size=24)
