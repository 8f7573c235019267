# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# As wide as a ViT-S/16, to start from one that is published. It is no network
# of the paper, which has no score of it. FILE is as its publisher has it:
# model.backbone.init_cfg = dict(
#     type='Pretrained', checkpoint=FILE, source='linear_ff_image')
_base_ = 'linear_ff_ssv2.py'

model = dict(
    backbone=dict(embed_dims=384, num_heads=6),
    cls_head=dict(in_channels=384))
