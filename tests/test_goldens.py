# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Stored outputs of small models."""
import json

import pytest
import torch
from goldens.make import BACKBONES, FOLDER, ONLINE, compute
from mmaction.registry import MODELS
from safetensors import safe_open


def _read(name):
    """Read config, weights, input and results of a golden."""
    with safe_open(FOLDER / f'{name}.safetensors', 'pt') as file:
        config = json.loads(file.metadata()['config'])
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    state, results = {}, {}
    for key, x in tensors.items():
        kind, _, name = key.partition('.')
        if kind == 'state':
            state[name] = x.float() if x.is_floating_point() else x
        elif kind == 'result':
            results[name] = x
    return config, state, tensors['input'].float(), results


@pytest.mark.parametrize('name', [*BACKBONES, *ONLINE])
def test_outputs_match_golden(name):
    config, state, x, expected = _read(name)
    model = MODELS.build(config).eval()
    model.load_state_dict(state)
    got = compute(name, model, x)
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(got[key], value, rtol=1e-5, atol=1e-5,
                                   msg=lambda m: f'{name}, {key}: {m}')


def test_every_model_has_one_golden():
    files = {path.stem for path in FOLDER.glob('*.safetensors')}
    assert files == {*BACKBONES, *ONLINE}
