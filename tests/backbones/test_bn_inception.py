# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""BN-Inception compared with TSN's network file, layer by layer."""
import re

import pytest
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

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


def published(channels=3):
    """Return tensors with the names of the published files."""
    torch.manual_seed(0)
    state = {}

    def add(name, inside, outside, kernel):
        state[f'{name}.weight'] = torch.randn(
            outside, inside, kernel, kernel) * (2 / inside / kernel**2)**0.5
        state[f'{name}.bias'] = torch.randn(outside) * 0.1
        state.update({
            f'{name}_bn.weight': torch.rand(outside) + 0.5,
            f'{name}_bn.bias': torch.randn(outside) * 0.1,
            f'{name}_bn.running_mean': torch.randn(outside) * 0.1,
            f'{name}_bn.running_var': torch.rand(outside) + 0.5})

    add('conv1_7x7_s2', channels, 64, 7)
    add('conv2_3x3_reduce', 64, 64, 1)
    add('conv2_3x3', 64, 192, 3)
    width = 192
    for name, *numbers in ROWS:
        one, reduce, three, first, second, third, pool = map(int, numbers)
        block = f'inception_{name}_'
        if one:
            add(f'{block}1x1', width, one, 1)
        add(f'{block}3x3_reduce', width, reduce, 1)
        add(f'{block}3x3', reduce, three, 3)
        add(f'{block}double_3x3_reduce', width, first, 1)
        add(f'{block}double_3x3_1', first, second, 3)
        add(f'{block}double_3x3_2', second, third, 3)
        if pool:
            add(f'{block}pool_proj', width, pool, 1)
        width = one + three + third + (pool or width)
    assert width == 1024
    return state


def naive(state, x):
    """Compute the output of the last block from published tensors."""

    def conv(x, name, stride=1):
        weight = state[f'{name}.weight']
        x = F.conv2d(x, weight, state[f'{name}.bias'], stride,
                     weight.shape[-1] // 2)
        mean, var, scale, shift = (
            state[f'{name}_bn.{key}'][:, None, None]
            for key in ('running_mean', 'running_var', 'weight', 'bias'))
        return ((x - mean) / (var + 1e-5).sqrt() * scale + shift).relu()

    def halve(x):
        # Pad only after the last row and column.
        return F.max_pool2d(
            F.pad(x, (0, 1, 0, 1), value=float('-inf')), 3, 2)

    x = halve(conv(x, 'conv1_7x7_s2', 2))
    x = halve(conv(conv(x, 'conv2_3x3_reduce'), 'conv2_3x3'))
    for name, one, *_, pool in ROWS:
        block = f'inception_{name}_'
        stride = 2 if one == '0' else 1
        parts = [] if one == '0' else [conv(x, f'{block}1x1')]
        parts.append(conv(conv(x, f'{block}3x3_reduce'), f'{block}3x3',
                          stride))
        y = conv(x, f'{block}double_3x3_reduce')
        parts.append(conv(conv(y, f'{block}double_3x3_1'),
                          f'{block}double_3x3_2', stride))
        if one == '0':
            parts.append(halve(x))
        else:
            y = (F.max_pool2d(x, 3, 1, 1) if name == '5b' else
                 F.conv2d(x, x.new_full((x.shape[1], 1, 3, 3), 1 / 9),
                          padding=1, groups=x.shape[1]))
            parts.append(conv(y, f'{block}pool_proj'))
        x = torch.cat(parts, 1)
    return x


def build(channels=3):
    init_default_scope('mmaction')
    return MODELS.build(
        dict(type='BNInception', in_channels=channels)).eval()


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
    x = torch.randn(2, channels, 64, 96)
    with torch.no_grad():
        got = model.double()(x.double())
    want = naive({k: v.double() for k, v in state.items()}, x.double())
    assert got.shape == (2, 1024, 2, 3)
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('prefix, slash', [
    ('', '_'), ('base_model.', '_'), ('module.base_model.', '_'), ('', '/')])
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
