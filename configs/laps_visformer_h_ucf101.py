# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (H) fine-tuned on UCF-101, split 1: 32 x 320 x 320. Paper, Table 5:
# top-1 96.85. Set load_from, or init_cfg of the backbone, to a checkpoint of
# laps_visformer_h_k400.py.
_base_ = 'laps_visformer_ucf101.py'

from mmvidattn.utils.config import derive

derive(
    _base_,
    num_frames=32,
    img_size=320,
    train_pipeline=dict(RandomRescale=dict(scale_range=(320, 480))))



model = dict(backbone=dict(pyramid=(1, 2, 3, 4, 5)))
train_dataloader = dict(batch_size=4)
val_dataloader = dict(batch_size=4)

optim_wrapper = dict(optimizer=dict(lr=0.036))
auto_scale_lr = dict(base_batch_size=32)
