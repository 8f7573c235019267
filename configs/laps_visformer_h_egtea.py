# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (H) fine-tuned on EGTEA Gaze+, split 1: 32 x 320 x 320. Paper, Table 6:
# top-1 66.07. Set load_from, or init_cfg of the backbone, to a checkpoint of
# laps_visformer_h_k400.py.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/egtea.py',
    '_base_/pipelines/laps.py', '_base_/schedules/sgd_36e_laps.py',
    '_base_/default_runtime.py'
]

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
