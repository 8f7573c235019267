# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer as wide as ViT-S/16, so that it can start from a
# published ViT-S/16. This network is not in the paper. Set FILE to the
# published file:
#     model.backbone.init_cfg = dict(
#         type='Pretrained', checkpoint=FILE, source='linear_ff_image')
_base_ = 'linear_ff_ssv2.py'

model = dict(
    backbone=dict(embed_dims=384, num_heads=6),
    cls_head=dict(in_channels=384))
