# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model L: 16 x 320 x 320. Paper, Table 4: top-1 78.71, top-5 93.77,
# 173.0 G multiply-accumulates per view, 40.0 M parameters.
_base_ = 'laps_visformer_b_k400.py'

from mmvidattn.utils.config import derive

derive(_base_, num_frames=16)



model = dict(backbone=dict(pyramid=(1, 2, 3, 4)))
train_dataloader = dict(batch_size=8)
val_dataloader = dict(batch_size=8)

auto_scale_lr = dict(base_batch_size=64)
