# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options that backbones reject, with the values in the message."""
import re

import pytest
import torch
from backbones.families import FRAMES, TINY
from mmaction.registry import MODELS

import mmvidattn.backbones as zoo

SOFTMAX, LINEAR = dict(type='SoftmaxAttention'), dict(type='LinearAttention')
ENCODER = dict(model='fact_encoder', tubelet_frames=1, num_temporal_layers=2)
TSM = dict(mode='tsm', divisor=4)
ARCH = TINY[zoo.DualFormer]['arch']
CASES = {
    zoo.LinearVideoTransformer: (
        (dict(pattern='windowed'), 'window_frames=None .* attention in win'),
        (dict(patch_frames=2), 'patch_frames must be an odd number, got 2'),
        (dict(decay={}), "decay requires pattern='causal'.* another pattern"),
        (dict(pattern='causal', temporal_shift=dict(
            TSM, boundary='self')), "boundary='zero', got 'self'"),
        (dict(pattern='causal', attention=dict(type='CosFormerAttention')),
         'causal.*CosFormerAttention'),
        (dict(attention=[SOFTMAX] * 3), 'each of the 2 layers'),
        (dict(attention=dict(layers={2: SOFTMAX}, rest=LINEAR)),
         'numbers from 0 to 1, got'),
        (dict(attention=dict(layers={0: SOFTMAX})), 'rest=ATTENTION'),
        (dict(attention=dict(layers={0: 'softmax'}, rest=LINEAR)),
         "attention of layer 0 must be a dict, got 'softmax'")),
    zoo.XViT: (
        (dict(img_size=(64, 40)), r'img_size=\(64, 40\).*by patch_size=16'),
        (dict(temporal_shift=dict(mode='cross', divisor=4)),
         "temporal_shift.*'tsm', 'window'.*'cross'"),
        (dict(causal=True, temporal_shift=dict(TSM, segment_frames=2)),
         'segment_frames.*got 2'),
        (dict(causal=True, temporal_shift=dict(TSM, boundary='self')),
         "got 'self'")),
    zoo.ViViT: (
        (dict(order='time_space'), "order requires model='fact_attention'.*"),
        (dict(num_temporal_layers=2), "num_temporal_layers requires.*'joint'"),
        (dict(zero_init_temporal=True), 'zero_init_temporal requires'),
        (dict(model='fact_dot', pool='cls'), "'fact_dot' has no class token"),
        (dict(model='fact_dot', num_heads=1), 'num_heads must be even.*got 1'),
        (dict(model='fact_dot', attention=LINEAR),
         "fact_dot' requires .*attention=.*got.*'LinearAttention'"),
        (dict(model='fact_dot', attention=dict(SOFTMAX, drop=.1)),
         "with dropout, got.*'drop'"),
        (dict(model='fact_dot', fixation={}),
         "fact_dot' requires fixation=None.*fixation={}"),
        (dict(num_frames=7), 'num_frames.*tubelet_frames=2, got 7'),
        (dict(img_size=40), r'img_size=\(40, 40\).*patch_size=16'),
        (dict(sampled_frames=4), 'sampled_frames needs tubelet_frames=1'),
        (dict(sampled_frames=9, tubelet_frames=1), 'sampled_frames.*8, got 9'),
        (dict(causal={}), "causal requires model='fact_encoder'"),
        (dict(ENCODER, tubelet_frames=2, causal={}), 'tubelet_frames=1.* 2'),
        (dict(ENCODER, num_temporal_layers=0, causal={}),
         'num_temporal_layers.*got 0'),
        (dict(ENCODER, causal=dict(window=4)), r"got \['window'\]"),
        (dict(ENCODER, causal=dict(attention=SOFTMAX)), 'window_frames')),
    zoo.DualFormer: (
        (dict(pyramid_sizes=((8, 7, 7), (), (), ())),
         r'pyramid_sizes.*got \(\(8, 7, 7'),
        (dict(pyramid_sizes=((), )), 'pyramid_sizes.*4 stages'),
        (dict(drop_path_rate=1.), 'drop_path_rate.*got 1.0'),
        (dict(patch_merging='linear', temporal_pooling=(1, 2, 1)),
         r'temporal_pooling.*\(1, 2, 1\)'),
        (dict(window_size=(8, 7)), r'window_size.*\(8, 7\)'),
        (dict(arch=dict(ARCH, num_heads=(3, 1, 1, 1))),
         'embed_dims=8.*heads=3')),
    **{backbone: (
        (dict(attention='x'), "attention .*'x'"),
        (dict(pyramid=()), 'pyramid'),
        (dict(pyramid=(1, 4)), '8 frames form no pairs at the .* level 4'),
        *more) for backbone, more in zip(FRAMES, (
            ((dict(shift='token'), "shift .*'token'"),
             (dict(img_size=31), 'img_size must be at least 32, got 31')),
            ((dict(shift='token'), "shift .*'token'"),
             (dict(arch=dict(TINY[zoo.ResT]['arch'], num_heads=(1, 2, 4, 6))),
              'embed_dims=128.*num_heads=6')),
            ((dict(img_size=70), '70.* by patch_size=16'), )))},
    zoo.InflatedBackbone: (
        (dict(model='visformer_small'),
         "'timm.NAME' or a config, got 'visformer_small'"),
        (dict(model='torch.x'), "'timm.NAME'"),
        (dict(model_cfg=dict(a=1)), "model_cfg requires model='timm.NAME'")),
}


@pytest.mark.parametrize('backbone, options, message', [
    (backbone, *row) for backbone, rows in CASES.items() for row in rows],
    ids=lambda x: getattr(x, '__name__', ''))
def test_rejects(backbone, options, message):
    with pytest.raises(ValueError, match=message):
        backbone(**{**TINY[backbone], **options})


def test_bidirectional_networks_cannot_be_streams():
    with pytest.raises(NotImplementedError, match='XViT.*not causal'):
        zoo.XViT(**TINY[zoo.XViT]).initial_state()


def test_bn_inception_rejects_other_inputs():
    model = MODELS.build(dict(type='BNInception'))
    for shape in (1, 10, 64, 64), (1, 3, 64, 70), (3, 64):
        with pytest.raises(ValueError, match=re.escape(
                'takes [B, 3, H, W], H and W multiples of 32')):
            model(torch.zeros(shape))
