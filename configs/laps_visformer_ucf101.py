# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS fine-tuned on UCF-101, split 1: 8 x 224 x 224. Paper, Table 5: top-1
# 95.43.
# Set load_from, or init_cfg of the backbone, to a checkpoint of
# laps_visformer_k400.py.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/ucf101.py',
    '_base_/pipelines/laps.py', '_base_/schedules/sgd_18e_laps.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)

train_dataloader = dict(batch_size=40)
val_dataloader = dict(batch_size=40)
