# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-B on Kinetics-400 by the paper's text; see
# dualformer_paper_tiny_k400.py. Paper, Table 1: top-1 81.1, top-5 95.0 with
# ImageNet-1k start weights, 82.9 and 95.5 with ImageNet-21k, at 4 x 1 views,
# 1072 G multiply-accumulates for the four views.
_base_ = 'dualformer_base_k400.py'

model = dict(
    backbone=dict(pooling='factorized', patch_merging='linear'))
