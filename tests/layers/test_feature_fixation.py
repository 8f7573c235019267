# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch import nn

from mmvidattn.layers import (
    FeatureFixation,
    LinearAttention,
    SoftmaxAttention,
)


def _by_hand(module, q, k, v, mode, inputs, shared, aggregate):
    def ratio(gate, xs):
        u = {
            'concat': lambda: torch.cat(xs, -1),
            'add': lambda: sum(xs),
            'mul': lambda: torch.stack(xs).prod(0)
        }[aggregate]()
        return 1 / (1 + (-(u @ gate.weight.T + gate.bias)).exp())

    if mode == 'separate':
        return (q * ratio(module.q_gate, [q]), k * ratio(module.k_gate, [k]))
    xs = [q, k, v][:len(inputs)]
    if shared:
        return q * ratio(module.gate, xs), k * ratio(module.gate, xs)
    return q * ratio(module.q_gate, xs), k * ratio(module.k_gate, xs)


CASES = [('separate', 'qk', False, 'concat')] + [
    ('cooperative', inputs, shared, aggregate) for inputs in ('qk', 'qkv')
    for shared in (True, False) for aggregate in ('concat', 'add', 'mul')
]


@pytest.mark.parametrize('mode, inputs, shared, aggregate', CASES)
def test_matches_equations_4_and_5(mode, inputs, shared, aggregate):
    module = FeatureFixation(8, mode, inputs, shared, aggregate).double()
    q, k, v = torch.rand(3, 2, 5, 2, 8, dtype=torch.float64).unbind(0)
    expected = _by_hand(module, q, k, v, mode, inputs, shared, aggregate)
    for got, want in zip(module(q, k, v), expected):
        assert torch.allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize('mode, inputs, shared, aggregate', CASES)
def test_across_heads_equals_one_head_of_all_channels(mode, inputs, shared,
                                                      aggregate):
    options = mode, inputs, shared, aggregate
    module = FeatureFixation(
        8, *options, num_heads=3, across_heads=True).double()
    q, k, v = torch.rand(3, 2, 5, 3, 8, dtype=torch.float64).unbind(0)
    expected = _by_hand(module, *(x.flatten(-2) for x in (q, k, v)), *options)
    for got, want in zip(module(q, k, v), expected):
        assert got.shape == q.shape
        assert torch.allclose(got.flatten(-2), want, rtol=1e-12)


@pytest.mark.parametrize('case', ['shared', 'unshared', 'nogate', 'softmax'])
def test_golden_released_core(golden, case):
    """Feature map, gate and attention of the released code, in float64."""
    G = golden('linear/golden_attn.pt')
    q, k, v = (G[name].transpose(1, 2) for name in 'qkv')
    g = G[f'lvt_core_{case}']
    attention = SoftmaxAttention(16, 3, (20, )) if case == 'softmax' else \
        LinearAttention(16, 3, (20, ), offset='auto')
    q, k = attention.feature_map(q), attention.feature_map(k)
    if g['gates']:
        fixation = FeatureFixation(16, shared=case == 'shared').double()
        fixation.load_state_dict({
            name.replace('pgate', 'gate'): value
            for name, value in g['gates'].items()
        })
        q, k = fixation(q, k, v)
    y = attention(q, k, v)
    assert (y.transpose(1, 2) - g['core']).norm() < 1e-10 * g['core'].norm()
    proj = nn.Linear(48, 48).double()
    proj.load_state_dict({
        name.removeprefix('proj.'): value
        for name, value in g['proj'].items()
    })
    out = proj(y.flatten(-2))
    assert (out - g['out']).norm() < 1e-10 * g['out'].norm()
