# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The table of memory in the documentation agrees with the configs."""
import re
from pathlib import Path

import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.apis import load_config

PAGE = Path(__file__).resolve().parents[2] / 'docs/scale.md'


def test_numbers_of_parameters_are_those_of_the_configs():
    rows = re.findall(r'^\| `(\w+)` \| ([\d.]+) M \|',
                      PAGE.read_text('utf-8'), re.M)
    assert len(rows) == 4
    init_default_scope('mmaction')
    for name, millions in rows:
        model = load_config(name).model
        model.backbone.pop('init_cfg', None)
        # Blending cannot be built without data.
        model.get('data_preprocessor', {}).pop('blending', None)
        with torch.device('meta'):
            parameters = MODELS.build(model).parameters()
        assert f'{sum(p.numel() for p in parameters) / 1e6:.1f}' == millions
