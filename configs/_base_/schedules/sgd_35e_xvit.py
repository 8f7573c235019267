# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# XViT on SSv2, as released; the learning rate is for 64 clips per batch.
_base_ = 'sgd_35e.py'

auto_scale_lr = dict(base_batch_size=64)
