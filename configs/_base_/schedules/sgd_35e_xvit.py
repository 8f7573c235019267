# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# XViT on SSv2, as released: the learning rate belongs to 64 clips a batch.
_base_ = 'sgd_35e.py'

auto_scale_lr = dict(base_batch_size=64)
