# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model H: 32 x 320 x 320. Paper, Table 4: top-1 79.72, top-5 94.08,
# 346.0 G multiply-accumulates per view, 40.0 M parameters.
_base_ = 'laps_visformer_b_k400.py'

from mmvidattn.utils.config import derive

derive(_base_, num_frames=32)



model = dict(backbone=dict(pyramid=(1, 2, 3, 4, 5)))
train_dataloader = dict(batch_size=4)
val_dataloader = dict(batch_size=4)

auto_scale_lr = dict(base_batch_size=32)
