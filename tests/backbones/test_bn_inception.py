# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""BN-Inception compared with TSN's network file, layer by layer."""
import re
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS

from mmvidattn.convert import convert

# Block: channels of the 1x1 branch; of the 3x3 branch (reduction, output); of
# the double 3x3 branch (reduction, both convolutions); and of the projection
# after the pool, as in TSN's network file.
TABLE = '''
3a 64  64 64    64 96 96     32
3b 64  64 96    64 96 96     64
3c 0   128 160  64 96 96     0
4a 224 64 96    96 128 128   128
4b 192 96 128   96 128 128   128
4c 160 128 160  128 160 160  128
4d 96  128 192  160 192 192  128
4e 0   128 192  192 256 256  0
5a 352 192 320  160 224 224  128
5b 352 192 320  192 224 224  128'''
ROWS = [line.split() for line in TABLE.strip().splitlines()]


def naive(state, x):
    """Compute the output of the last block from published tensors.

    Missing tensors are drawn and added to ``state``.
    """

    def conv(x, name, outside, kernel=3, stride=1):
        inside = x.shape[1]
        if f'{name}.weight' not in state:
            state[f'{name}.weight'] = torch.randn(
                outside, inside, kernel, kernel) * (2 / inside / kernel**2)**.5
            state[f'{name}.bias'] = torch.randn(outside) * 0.1
            state.update({
                f'{name}_bn.weight': torch.rand(outside) + 0.5,
                f'{name}_bn.bias': torch.randn(outside) * 0.1,
                f'{name}_bn.running_mean': torch.randn(outside) * 0.1,
                f'{name}_bn.running_var': torch.rand(outside) + 0.5})
        weight, bias = state[f'{name}.weight'], state[f'{name}.bias']
        x = F.conv2d(x, weight, bias, stride, kernel // 2)
        mean, var, scale, shift = (
            state[f'{name}_bn.{key}'][:, None, None]
            for key in ('running_mean', 'running_var', 'weight', 'bias'))
        return ((x - mean) / (var + 1e-5).sqrt() * scale + shift).relu()

    def halve(x):
        # Pad only after the last row and column.
        return F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float('-inf')), 3, 2)

    x = halve(conv(x, 'conv1_7x7_s2', 64, 7, 2))
    x = conv(x, 'conv2_3x3_reduce', 64, 1)
    x = halve(conv(x, 'conv2_3x3', 192))
    for name, *numbers in ROWS:
        one, reduce, three, first, second, third, pool = map(int, numbers)
        block, stride = f'inception_{name}_', 1 if one else 2
        parts = [conv(x, f'{block}1x1', one, 1)] if one else []
        y = conv(x, f'{block}3x3_reduce', reduce, 1)
        parts.append(conv(y, f'{block}3x3', three, stride=stride))
        y = conv(x, f'{block}double_3x3_reduce', first, 1)
        y = conv(y, f'{block}double_3x3_1', second)
        parts.append(conv(y, f'{block}double_3x3_2', third, stride=stride))
        if one:
            y = (F.max_pool2d(x, 3, 1, 1) if name == '5b' else
                 F.avg_pool2d(x, 3, 1, 1))
            parts.append(conv(y, f'{block}pool_proj', pool, 1))
        else:
            parts.append(halve(x))
        x = torch.cat(parts, 1)
    return x


@cache
def published(channels):
    """Return tensors with the names of the published files."""
    torch.manual_seed(0)
    state = {}
    naive(state, torch.zeros(1, channels, 32, 32))
    return state


def build(channels):
    return MODELS.build(dict(type='BNInception', in_channels=channels)).eval()


def load(model, state):
    result = convert('bn_inception', state)
    model.load_state_dict({
        name.removeprefix('backbone.'): value
        for name, value in result.items() if name.startswith('backbone.')})
    return result


@pytest.mark.parametrize('channels', [3, 10])
def test_matches_naive(channels):
    state = published(channels)
    model = build(channels)
    load(model, state)
    x = torch.randn(2, channels, 32, 64)
    with torch.no_grad():
        got = model.double()(x.double())
    want = naive({k: v.double() for k, v in state.items()}, x.double())
    assert got.shape == (2, 1024, 1, 2)
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('prefix, slash', [
    ('base_model.', '_'), ('module.base_model.', '/')])
def test_loads_early_files_and_files_of_tsn_ssn_and_caffe(prefix, slash,
                                                          capsys):
    """In early files, the tensors of norms have the shape [1, C]."""
    state = {
        prefix + re.sub('^(conv1|conv2|inception_3a)_', rf'\1{slash}', name):
        value[None] if '_bn.' in name else value
        for name, value in published(10).items()}
    state[f'{prefix}fc_action.weight'] = torch.randn(4, 1024)
    state['module.activity_fc.weight'] = torch.zeros(21, 1024)
    model = build(10)
    result = load(model, state)
    assert result['cls_head.fc_cls.weight'].shape == (4, 1024)
    assert torch.equal(
        model.conv1.norm.running_mean,
        state[f'{prefix}conv1{slash}7x7_s2_bn.running_mean'][0])
    assert 'dropped 1: module.activity_fc.weight' in capsys.readouterr().err
