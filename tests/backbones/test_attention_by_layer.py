# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The option `attention` for single layers, in all backbones that have it."""
import json

import pytest
import torch
from backbones.families import TINY, build, clips_for
from mmaction.registry import MODELS
from mmengine.config import Config
from registered import arguments_for

from mmvidattn.backbones import InflatedBackbone, LinearVideoTransformer, ViViT
from mmvidattn.layers import BaseAttention
from mmvidattn.layers.temporal import FrameMixing

SOFTMAX, LINEAR = dict(type='SoftmaxAttention'), dict(type='LinearAttention')
TEMPORAL = dict(model='fact_encoder', num_temporal_layers=2)
# Backbone, options, two attentions, and the number of layers.
CASES = {
    cls.__name__: (cls, {}, *(('2d', 'leap') if 'pyramid' in arguments_for(
        cls, pyramid=1) or cls is InflatedBackbone else (SOFTMAX, LINEAR)))
    for cls in TINY
    if cls is InflatedBackbone or arguments_for(cls, attention=None)}
CASES['temporal encoder'] = ViViT, TEMPORAL, SOFTMAX, LINEAR


def kinds_of(model):
    """Return the attention of each layer."""
    kinds = [type(m).__name__ if isinstance(m, BaseAttention) else m.attention
             for m in model.modules()
             if isinstance(m, (BaseAttention, FrameMixing))]
    # A factorized layer has two attentions.
    return kinds[::2] if isinstance(model, LinearVideoTransformer) else kinds


@pytest.mark.parametrize('backbone, options, first, second', CASES.values(),
                         ids=CASES)
def test_each_layer_has_its_attention(backbone, options, first, second):
    names = [x if isinstance(x, str) else x['type'] for x in (first, second)]
    number = len(kinds_of(build(backbone, **options)))
    for last in number - 1, str(number - 1):
        torch.manual_seed(0)
        model = build(backbone, attention=dict(
            layers={last: second}, rest=first), **options)
        assert kinds_of(model) == [names[0]] * (number - 1) + [names[1]]
    torch.manual_seed(0)
    same = build(backbone, attention=[first] * (number - 1) + [second],
                 **options)
    same.load_state_dict(model.state_dict())
    clips = clips_for(model, **options)
    with torch.no_grad():
        assert torch.equal(model.eval()(clips), same.eval()(clips))


def test_config_with_numbers_of_layers_survives_its_files():
    attention = dict(layers={0: SOFTMAX}, rest=LINEAR)
    cfg = Config(dict(model=dict(
        type='LinearVideoTransformer', attention=attention,
        **TINY[LinearVideoTransformer])))
    for again in (Config.fromstring(cfg.pretty_text, '.py').model,
                  json.loads(json.dumps(cfg.model))):
        model = MODELS.build(again)
        assert kinds_of(model) == ['SoftmaxAttention', 'LinearAttention']
