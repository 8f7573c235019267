# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Small online models of other families than TeSTra's."""
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

BACKBONES = dict(
    miniroad=dict(
        type='MiniROAD', embed_dims=8, proj_dims=12, num_layers=2,
        work_memory_length=5),
    causal_transformer=dict(
        type='CausalTransformer', embed_dims=8, num_heads=2, ffn_dims=12,
        num_layers=2, attention_window=4, work_memory_length=7))


def build_rival(name, head=None, **kwargs):
    init_default_scope('mmaction')
    backbone = dict(
        BACKBONES[name], in_channels=dict(rgb=6, flow=4), **kwargs)
    return MODELS.build(dict(
        type='OnlineActionDetector',
        backbone=backbone,
        cls_head=dict(type='OnlineActionHead', num_classes=5,
                      in_channels=backbone['embed_dims'], score='logit',
                      **(head or {}))))
