# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Outputs of small models that were written down when they were right."""
import json

import pytest
import torch
from goldens.make import BACKBONES, FOLDER, ONLINE, compute
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from safetensors import safe_open

from mmvidattn.ops.dispatch import use_backends


def _read(name):
    """The config, the weights, the input and the results of a golden."""
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


@pytest.mark.parametrize('backends', [False, True])
@pytest.mark.parametrize('name', [*BACKBONES, *ONLINE])
def test_strict_load_gives_the_same_outputs(name, backends):
    config, state, x, wanted = _read(name)
    init_default_scope('mmaction')
    model = MODELS.build(config).eval()
    model.load_state_dict(state)
    with use_backends(backends):
        got = compute(name, model, x)
    assert got.keys() == wanted.keys()
    # ResT's norm of attention weights magnifies another order of sums.
    tolerance = 1e-4 if backends and name == 'laps_rest' else 1e-5
    for key, value in wanted.items():
        torch.testing.assert_close(got[key], value, rtol=tolerance,
                                   atol=tolerance,
                                   msg=lambda m: f'{name}, {key}: {m}')


def test_there_is_a_golden_of_each_and_no_other():
    files = {path.stem for path in FOLDER.glob('*.safetensors')}
    assert files == {*BACKBONES, *ONLINE}
