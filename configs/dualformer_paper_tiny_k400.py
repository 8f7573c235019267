# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-T on Kinetics-400 by the paper's text, with token labels: the
# (2+1)D pyramid of Eq. 3, patch merging as in Swin, and the settings of Sec.
# 4.2. Paper, Table 1: top-1 79.5, top-5 94.1 at 4 x 1 views, 240 G
# multiply-accumulates for the four views.
_base_ = 'dualformer_tiny_tl_k400.py'

model = dict(
    backbone=dict(pooling='factorized', patch_merging='linear'))

# 8 GPUs
train_dataloader = dict(batch_size=8)
auto_scale_lr = dict(base_batch_size=64)
_base_.param_scheduler[0].end = 2.5
