# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (RB), on ResT-B: 8 x 224 x 224. Paper, Table 3: top-1 71.89, 39.3 G
# multiply-accumulates per view, 29.9 M parameters. We count 38.2 G.
_base_ = 'laps_rest_s_k400.py'

model = dict(backbone=dict(arch='base'), cls_head=dict(in_channels=768))

train_dataloader = dict(batch_size=30)
val_dataloader = dict(batch_size=30)

optim_wrapper = dict(optimizer=dict(lr=0.0675))
auto_scale_lr = dict(base_batch_size=240)
