# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Outputs of the released code for attentions without a state."""
import pytest
import torch
from helpers import relative

from mmvidattn.ops import (
    cosformer_attention,
    feature_map,
    linear_attention,
    linformer_attention,
    performer_attention,
    performer_features,
    softmax_attention,
)


def _linear(kind):
    return lambda q, k, v: linear_attention(
        feature_map(q, kind), feature_map(k, kind), v)


def _cosformer(order):
    return lambda q, k, v: cosformer_attention(
        q.relu(), k.relu(), v, order=order)


CASES = {
    ('linear_relu', 'out'): _linear('relu'),
    ('linear_elu1', 'out'): _linear('elu+1'),
    ('softmax', 'out'): softmax_attention,
    ('cosformer', 'out'): _cosformer('right'),
    ('cosformer', 'out_left'): _cosformer('left'),
}
DTYPES = pytest.mark.parametrize('dtype, tolerance', [
    (torch.float64, 1e-10), (torch.float32, 1e-5)])


def _qkv(G, dtype):
    return [G[name].transpose(1, 2).to(dtype) for name in 'qkv']


@DTYPES
@pytest.mark.parametrize('case', CASES, ids='-'.join)
def test_attention(golden, case, dtype, tolerance):
    G = golden('linear/golden_attn.pt')
    y = CASES[case](*_qkv(G, dtype))
    name, key = case
    assert relative(y.transpose(1, 2), G[name][key]) < tolerance


@pytest.mark.parametrize('kind, key', [('relu', 'relu_eps'),
                                       ('elu+1', 'elu1')])
def test_linear_attention_with_negative_keys(golden, kind, key):
    D = golden('linear/golden_attn.pt')['degenerate']
    y = _linear(kind)(*_qkv(D, torch.float64))
    assert torch.allclose(y.transpose(1, 2), D[key], rtol=0, atol=1e-12)


@DTYPES
def test_performer(golden, dtype, tolerance):
    G = golden('linear/golden_attn.pt')
    q, k, v = _qkv(G, dtype)
    case = G['performer_favor']
    W = case['W'].to(dtype)
    for y, key in ((performer_features(q, W, is_query=True), 'q_prime'),
                   (performer_features(k, W, is_query=False), 'k_prime'),
                   (performer_attention(q, k, v, W), 'out')):
        assert relative(y, case[key].transpose(1, 2)) < tolerance, key


@DTYPES
def test_linformer(golden, dtype, tolerance):
    case = golden('linear/golden_attn.pt')['linformer_share0']
    x = case['x'].unflatten(-1, (3, 16)).to(dtype)
    y = linformer_attention(x, x, x, case['E'].to(dtype),
                            case['Fm'].to(dtype))
    assert relative(y, case['out'].transpose(1, 2)) < tolerance
