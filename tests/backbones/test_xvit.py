# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import partial

import pytest
from backbones.families import build, outputs_of, released
from helpers import relative

from mmvidattn.backbones import XViT

_build = partial(build, XViT)


@pytest.mark.parametrize('kwargs, message', [
    (dict(img_size=70), 'img_size=.*70.* not divisible by patch_size=16'),
    (dict(img_size=(64, 40)), r'img_size=\(64, 40\)'),
    (dict(temporal_shift=dict(mode='cross', divisor=4)),
     "temporal_shift.*'tsm', 'window'.*'cross'"),
    (dict(temporal_shift=dict(divisor=4)), "temporal_shift.*'tsm'.*None"),
    (dict(fixation=dict(mode='x')), "'separate', 'cooperative'.*'x'"),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(**kwargs)


@pytest.mark.parametrize('case, shift', [
    ('div4', dict(mode='tsm', divisor=4)), ('noshift', None)])
def test_golden_released_model(golden, case, shift):
    """Outputs of the released model with its converted weights."""
    G = golden('linear/golden_xvit.pt')
    g = G[case]
    model = released(
        'xvit', g['state_dict'],
        dict(type='XViT', num_frames=8, img_size=64, embed_dims=48,
             num_layers=2, num_heads=3, temporal_shift=shift),
        dict(type='XViTHead', num_classes=7, in_channels=48, num_heads=3,
             hidden_dims=24))
    logits, taps = outputs_of(model, G['_input'])
    assert relative(logits, g['output']) < 1e-5
    assert taps.keys() == g['taps'].keys()
    for name, tap in g['taps'].items():
        assert relative(taps[name], tap) < 1e-5, name
