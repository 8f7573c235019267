# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from ops.attentions import naive

from mmvidattn.layers.temporal import FrameMixing, LAPSAttention

B, T, N, G, C = 2, 8, 3, 2, 16


def _by_hand(layer, x, attention, level, shift):
    """Compute the layer with naive ops; x is [B T, N, C]."""
    qkv = x @ layer.qkv.weight.T
    if layer.qkv.bias is not None:
        qkv = qkv + layer.qkv.bias
    q, k, v = qkv.view(B, T, N, 3, G, C // G).unbind(3)
    if attention == 'leap':
        y = naive.leap_attention(q, k, v, level)
    elif attention == '2d':
        y = naive.softmax_attention(q, k, v)
    else:
        y = naive.softmax_attention(
            *(z.flatten(1, 2) for z in (q, k, v))).view(q.shape)
    if shift == 'periodic':
        y = naive.periodic_shift(y, 1 / 8, 'previous')
    elif shift == 'plain':
        y = naive.periodic_shift(
            y.flatten(-2)[..., None, :], 1 / 8, 'previous')
    y = y.reshape(B * T, N, C) @ layer.proj.weight.T
    return y if layer.proj.bias is None else y + layer.proj.bias


@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('shift', ['none', 'plain', 'periodic', 'token'])
@pytest.mark.parametrize('attention, level', [
    ('2d', 1), ('3d', 1), ('leap', 1), ('leap', 3)])
def test_layer_matches_naive_ops(attention, level, shift, bias):
    torch.manual_seed(0)
    mixing = FrameMixing(T, attention, level, shift, 1 / 8, 'previous')
    layer = LAPSAttention(C, G, mixing, bias).double()
    x = torch.randn(B * T, N, C, dtype=torch.float64)
    want = _by_hand(layer, x, attention, level, shift)
    assert torch.allclose(layer(x), want, atol=1e-12)
    # The layer also accepts a grid of tokens.
    grid = layer(x.unflatten(1, (1, N)))
    assert torch.allclose(grid.flatten(1, 2), want, atol=1e-12)
