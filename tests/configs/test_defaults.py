# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The default arguments of each backbone are the values of a config."""
import inspect
import json

import pytest
from config_cache import load_config
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

# Config, and the options that differ from the defaults.
CONFIGS = {
    'dualformer_tiny_k400': ('drop_path_rate', ),
    'laps_rest_s_k400': (),
    'laps_visformer_k400': (),
    'laps_vit_k400': (),
    'mat_thumos14': (),
    'miniroad_thumos14': (),
    'testra_box_thumos14': (),
    'vivit_b16x2_joint_k400': (),
}


@pytest.mark.parametrize('name', CONFIGS)
def test_defaults_equal_the_config(name):
    init_default_scope('mmaction')
    backbone = load_config(name).model.backbone
    parameters = inspect.signature(MODELS.get(backbone.type)).parameters
    defaults = {key: parameter.default
                for key, parameter in parameters.items()
                if parameter.default is not parameter.empty}
    changed = {key for key in defaults.keys() & backbone.keys()
               if json.dumps(defaults[key]) != json.dumps(backbone[key])}
    assert changed == {*CONFIGS[name]}
