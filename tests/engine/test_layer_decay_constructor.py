# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmaction.registry import OPTIM_WRAPPER_CONSTRUCTORS
from torch import nn


class Backbone(nn.Module):

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(2, 2)
        self.block = nn.Linear(2, 2, bias=False)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)

    def get_layer_depth(self, name, prefix=''):
        return int(name.removeprefix(prefix).startswith('block')), 3


def recognizer(backbone):
    model = nn.Module()
    model.backbone = backbone
    model.cls_head = nn.Linear(2, 2)
    return model


def build(model, paramwise_cfg=None):
    return OPTIM_WRAPPER_CONSTRUCTORS.build(dict(
        type='LearningRateDecayOptimWrapperConstructor',
        optim_wrapper_cfg=dict(type='OptimWrapper', optimizer=dict(
            type='SGD', lr=8., weight_decay=0.1)),
        paramwise_cfg=paramwise_cfg))(model).optimizer


def test_rates_decay_towards_the_input():
    optimizer = build(recognizer(Backbone()), dict(decay_rate=0.5))
    got = {
        name: (group['lr'], group['weight_decay'])
        for group in optimizer.param_groups for name in group['param_names']
    }
    assert got == {
        'backbone.embed.weight': (2., 0.1),
        'backbone.embed.bias': (2., 0.),
        'backbone.block.weight': (4., 0.1),
        'cls_head.weight': (8., 0.1),
        'cls_head.bias': (8., 0.)
    }


def test_rejects_wrong_options_and_backbones_without_depths():
    for cfg in (None, dict(decay_rate=0), dict(decay_rate=1.5),
                dict(layer_decay_rate=0.5),
                dict(decay_rate=0.5, num_layers=12)):
        with pytest.raises(ValueError, match='paramwise_cfg must be'):
            build(recognizer(Backbone()), cfg)
    with pytest.raises(ValueError, match='get_layer_depth.*got Linear'):
        build(recognizer(nn.Linear(2, 2)), dict(decay_rate=0.5))
