# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import partial

import pytest
import torch
from backbones.families import TINY, build, outputs_of, released
from helpers import relative

from mmvidattn.backbones import LinearVideoTransformer

_build = partial(build, LinearVideoTransformer)


@pytest.mark.parametrize('kwargs, message', [
    (dict(window_frames=2), 'window_frames'),
    (dict(patch_frames=2), 'patch_frames must be an odd number, got 2'),
    (dict(pattern='windowed'), 'window_frames'),
    (dict(fixation=dict(mode='x')), "'separate', 'cooperative'.*'x'"),
    (dict(temporal_shift=dict(mode='x', divisor=4)), "'tsm'.*'x'"),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        LinearVideoTransformer(
            **{**TINY[LinearVideoTransformer], **kwargs})


def test_one_frame_kernel_becomes_the_middle_of_three():
    one, three = _build(), _build(patch_frames=3)
    three.load_state_dict(one.state_dict())
    x = torch.randn(1, 3, 4, 64, 64)
    assert torch.allclose(one(x), three(x), atol=1e-5)


GOLDEN_OPTIONS = {
    'shared_eight_s1_div4': {},
    'shared_cross_s1_div4': dict(spatial_shift=dict(mode='cross', divisor=8)),
    'nogate_noshift': dict(
        fixation=None, temporal_shift=None, spatial_shift=None),
    'softmax_nogate': dict(
        fixation=None,
        attention=dict(type='SoftmaxAttention'),
        spatial_shift=dict(mode='cross', divisor=8)),
}


@pytest.mark.parametrize('case', GOLDEN_OPTIONS)
def test_golden_released_model(golden, case):
    """Outputs of the released model with its converted weights."""
    G = golden('linear/golden_lvt.pt')
    g, dims = G[case], G[case]['meta']['dims']
    model = released(
        'linear_ff', g['state_dict'],
        dict(type='LinearVideoTransformer', num_frames=8,
             embed_dims=dims['embed_dim'], num_layers=dims['depth'],
             num_heads=dims['num_heads'], **GOLDEN_OPTIONS[case]),
        dict(type='LinearVideoTransformerHead', num_classes=7,
             in_channels=32, hidden_dims=24))
    logits, taps = outputs_of(model, G['_input'])
    assert relative(logits, g['output']) < 1e-5
    for name, tap in g['taps'].items():
        assert relative(taps[name], tap) < 1e-5, name


def test_dropout_acts_twice_in_the_mlp():
    mlp, calls = _build(drop_rate=0.5).blocks[0].mlp, []
    mlp.dropout.register_forward_hook(lambda *args: calls.append(1))
    mlp(torch.randn(1, 4, 3, 3, 32))
    assert len(calls) == 2 and mlp.dropout.p == 0.5
