# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear video transformer, and XViT, on which its authors' code builds."""
import pytest
import torch
from backbones.families import build, outputs_of, released
from helpers import relative

from mmvidattn.backbones import LinearVideoTransformer

LVT = dict(type='LinearVideoTransformer', num_frames=8)
XVIT = dict(type='XViT', num_frames=8, img_size=64)
CROSS = dict(mode='cross', divisor=8)
GOLDENS = {
    ('lvt', 'shared_eight_s1_div4'): LVT,
    ('lvt', 'shared_cross_s1_div4'): dict(LVT, spatial_shift=CROSS),
    ('lvt', 'nogate_noshift'): dict(
        LVT, fixation=None, temporal_shift=None, spatial_shift=None),
    ('lvt', 'softmax_nogate'): dict(
        LVT, fixation=None, attention=dict(type='SoftmaxAttention'),
        spatial_shift=CROSS),
    ('xvit', 'div4'): dict(XVIT, temporal_shift=dict(mode='tsm', divisor=4)),
    ('xvit', 'noshift'): dict(XVIT, temporal_shift=None),
}


@pytest.mark.parametrize('family, case', GOLDENS)
def test_golden_released_model(golden, family, case):
    """Outputs of the released models with their converted weights."""
    G = golden(f'linear/golden_{family}.pt')
    g, sizes = G[case], dict(num_classes=7, hidden_dims=24)
    width, num_heads, source = 48, 3, 'xvit'
    head = dict(type='XViTHead', num_heads=3)
    if family == 'lvt':
        width, num_heads = (g['meta']['dims'][key]
                            for key in ('embed_dim', 'num_heads'))
        source, head = 'linear_ff', dict(type='LinearVideoTransformerHead')
    model = released(
        source, g['state_dict'],
        dict(GOLDENS[family, case], embed_dims=width, num_layers=2,
             num_heads=num_heads), dict(head, in_channels=width, **sizes))
    logits, taps = outputs_of(model, G['_input'])
    assert relative(logits, g['output']) < 1e-5
    assert taps.keys() >= g['taps'].keys()
    for name, tap in g['taps'].items():
        assert relative(taps[name], tap) < 1e-5, name


def test_dropout_acts_twice_in_the_mlp():
    mlp, calls = build(LinearVideoTransformer, drop_rate=0.5).blocks[0].mlp, []
    mlp.dropout.register_forward_hook(lambda *args: calls.append(1))
    mlp(torch.randn(1, 4, 3, 3, 32))
    assert len(calls) == 2 and mlp.dropout.p == 0.5
