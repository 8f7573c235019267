# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Arguments that layers reject, with the values in the message."""
import pytest
import torch
from torch import nn

from mmvidattn import layers
from mmvidattn.layers.temporal import FrameMixing, LAPSAttention

GRID = 4, 3, 5
TSM = dict(mode='tsm', divisor=4)
PERFORMER = dict(type='PerformerAttention', num_features=5)


def _attention(*size, attention=dict(type='LinearAttention'), **options):
    return layers.VideoSelfAttention(
        *size or (12, 3), attention, GRID, **options)


def _attend(**options):
    _attention(**options)(torch.randn(1, *GRID, 12))


def _lora_twice():
    model = nn.Sequential()
    model.qkv = nn.Linear(2, 2)
    for _ in range(2):
        layers.add_lora(model, 1)


def _mix(method):
    getattr(FrameMixing(8), method)(torch.zeros(9, 3, 2, 4))


CASES = [
    *((_attention, (), options, message) for options, message in (
        (dict(pattern='window'), 'window_frames=None .* attention in w'),
        (dict(pattern='time', window_frames=2),
         'window_frames=2 with .* not in windows'),
        (dict(fixation_first=True), 'fixation_first=True.*fixation=None'),
        (dict(fixation_first=True, fixation={}), r'shifts=\[\]'),
        (dict(decay={}), "decay requires pattern='causal'"),
        (dict(attention=PERFORMER, fixation=dict(aggregate='add')),
         "'add'.*head_dims=4.*got 5"),
        (dict(attention=PERFORMER, fixation={}, fixation_first=True,
              shifts=[TSM]), 'fixation_first.*4.*got 5'))),
    (_attend, (), dict(pattern='window', window_frames=9),
     'window_frames=9 exceeds .* 4 frames'),
    (_attend, (), dict(shifts=[dict(TSM, segment_frames=3)]),
     'clip of 4 frames.*segment_frames=3'),
    *((cls, args, {}, rf'embed_dims={args[0]}.*num_heads={args[1]}')
      for cls, args in ((_attention, (10, 3)),
                        (layers.FactorizedDotAttention, (14, 4)),
                        (layers.LocalWindowAttention, (10, 3, (1, 1, 1))),
                        (layers.GlobalPyramidAttention, (8, 3, ())),
                        (LAPSAttention, (8, 3, None)))),
    (layers.LARAAttention, (4, 3, (17, 17)), dict(num_landmarks=50), 'got 50'),
    (layers.FactorizedDotAttention, (12, 3), {}, 'even.*got 3'),
    (layers.LocalWindowAttention, (8, 2, (0, 1, 1)), {}, r'\(0, 1, 1\)'),
    (layers.GlobalPyramidAttention, (8, 2, ()), dict(pooling='max'),
     "avg'.*'max'"),
    *((layers.FeatureFixation, (8, 'separate'), option,
       "mode='separate' requires")
      for option in (dict(inputs='qkv'), dict(shared=True),
                     dict(aggregate='add'))),
    (FrameMixing, (8, '4d'), {}, "attention.*'2d', '3d', 'leap'.*'4d'"),
    (FrameMixing, (8, ), dict(shift_fraction=1), 'shift_fraction.*got 1'),
    (FrameMixing, (8, 'leap', 4), {}, '8 frames form no pairs at the .* 4'),
    *((_mix, (method, ), {}, '9 frames.*num_frames=8')
      for method in ('join', 'shift_heads')),
    (layers.add_lora, (nn.Linear(2, 2), 0), {},
     'rank must be a positive integer'),
    (layers.add_lora, (nn.Sequential(nn.Linear(2, 2)), 1), {},
     'Sequential has none'),
    (_lora_twice, (), {}, 'qkv already has LoRA')]


@pytest.mark.parametrize('call, args, kwargs, message', CASES)
def test_rejects(call, args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        call(*args, **kwargs)
