# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-S on Kinetics-400 by the paper's text, with token labels; see
# dualformer_paper_tiny_k400.py. Paper, Table 1: top-1 80.6, top-5 94.9 at 4 x
# 1 views, 636 G multiply-accumulates for the four views.
_base_ = 'dualformer_small_tl_k400.py'

model = dict(
    backbone=dict(pooling='factorized', patch_merging='linear'))
