# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Released
# recipe for Charades ("charades_21k_cgate"). It starts from the Kinetics-400
# model after 40 epochs, with one gate for Q and K, and trains for 60 epochs
# with several labels per clip. The score of a class is its largest score over
# 10 x 3 views. The paper does not report results on Charades.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/datasets/charades.py',
    '_base_/schedules/sgd_35e.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import change, derive

derive(_base_)



model = dict(
    backbone=dict(temporal_shift=dict(divisor=8, segment_frames=8)),
    cls_head=dict(
        multi_class=True,
        loss_cls=dict(type='BCELossWithLogits'),
        average_clips='max'))
train_dataloader = dict(drop_last=True)

optim_wrapper = dict(optimizer=dict(lr=0.035, weight_decay=1e-5))
param_scheduler = change(
    _base_.param_scheduler,
    WarmupCosineLR=dict(start_factor=0.001 / 0.035, end=60))
train_cfg = dict(max_epochs=60)
