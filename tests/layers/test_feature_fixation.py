# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from ops.attentions import naive
from torch import nn

from mmvidattn.layers import (
    FeatureFixation,
    LinearAttention,
    SoftmaxAttention,
)

CASES = [('separate', 'qk', False, 'concat')] + [
    ('cooperative', inputs, shared, aggregate) for inputs in ('qk', 'qkv')
    for shared in (True, False) for aggregate in ('concat', 'add', 'mul')
]


@pytest.mark.parametrize('across_heads', [False, True])
@pytest.mark.parametrize('mode, inputs, shared, aggregate', CASES)
def test_matches_equations_4_and_5(mode, inputs, shared, aggregate,
                                   across_heads):
    """A map across the heads equals one head of all channels."""
    module = FeatureFixation(
        8, mode, inputs, shared, aggregate, num_heads=3,
        across_heads=across_heads).double()
    tokens = torch.rand(3, 2, 5, 3, 8, dtype=torch.float64).unbind(0)
    got = module(*tokens)
    if across_heads:
        assert got[0].shape == tokens[0].shape
        got, tokens = ([x.flatten(-2) for x in y] for y in (got, tokens))
    for name, x, y in zip('qk', tokens, got):
        xs = [x] if mode == 'separate' else tokens[:len(inputs)]
        gate = module.gate if shared else getattr(module, f'{name}_gate')
        ratio = naive.fixation_ratio(xs, gate.weight, gate.bias, aggregate)
        assert torch.allclose(y, x * ratio, rtol=1e-12)


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
