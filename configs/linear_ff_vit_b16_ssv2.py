# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer as wide as ViT-B/16, so that it can start from a
# published ViT-B/16. This network is not in the paper. Set FILE to the
# published file:
#     model.backbone.init_cfg = dict(
#         type='Pretrained', checkpoint=FILE, source='linear_ff_image')
_base_ = 'linear_ff_ssv2.py'

model = dict(
    backbone=dict(embed_dims=768, num_heads=12),
    cls_head=dict(in_channels=768))
