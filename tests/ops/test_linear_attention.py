# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import sys

import pytest
import torch
from helpers import relative
from torch.utils._python_dispatch import TorchDispatchMode

from mmvidattn.ops import cheaper_order, feature_map, linear_attention
from mmvidattn.ops.linear_attention import naive_linear_attention


def _qkv(lead, N, M, G, D, E, dtype=torch.float64):
    gen = torch.Generator().manual_seed(0)

    def new(length, width):
        return torch.randn(*lead, length, G, width, generator=gen).to(dtype)

    return (new(N, D).relu() + 0.1, new(M, D).relu() + 0.1, new(M, E))


def test_order_auto_takes_the_cheaper_product():
    assert cheaper_order(289, 289, 64, 64) == 'right'
    assert cheaper_order(16, 16, 64, 64) == 'left'
    for N, M, D, E in [(10, 30, 16, 8), (30, 10, 16, 8), (64, 65, 64, 64)]:
        left, right = N * M * D + N * M * E, M * D * E + N * D * E
        assert cheaper_order(N, M, D, E) == (
            'right' if right < left else 'left')


def test_order_auto_depends_on_all_sizes(monkeypatch):
    seen = []
    monkeypatch.setattr(
        sys.modules['mmvidattn.ops.linear_attention'], 'cheaper_order',
        lambda *sizes: seen.append(sizes) or 'left')
    linear_attention(*_qkv((2, ), 3, 5, 4, 6, 7), order='auto')
    assert seen == [(3, 5, 6, 7)]


@pytest.mark.parametrize('dtype, tolerance', [(torch.float64, 1e-12),
                                              (torch.float32, 1e-5)])
@pytest.mark.parametrize('kind, key', [('relu', 'relu_eps'),
                                       ('elu+1', 'elu1')])
def test_golden_attention_with_negative_keys(golden, kind, key, dtype,
                                           tolerance):
    D = golden('linear/golden_attn.pt')['degenerate']
    q, k, v = (D[name].transpose(1, 2).to(dtype) for name in 'qkv')
    y = linear_attention(feature_map(q, kind), feature_map(k, kind), v)
    assert torch.allclose(
        y.transpose(1, 2).double(), D[key], rtol=0, atol=tolerance)


class CountDtypes(TorchDispatchMode):
    """Record the dtypes of matrix products."""

    def __init__(self):
        super().__init__()
        self.products = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.bmm.default:
            self.products.append(args[0].dtype)
        return func(*args, **(kwargs or {}))


def test_bfloat16_products_stay_in_bfloat16_without_gradients():
    """Sums are still float32: a bfloat16 sum of ones stops at 256."""
    q, k, v = _qkv((1, ), 300, 300, 2, 8, 8, torch.bfloat16)
    with CountDtypes() as counter:
        y = linear_attention(q, k, v, order='right')
    assert torch.bfloat16 in counter.products
    want = naive_linear_attention(*(x.double() for x in (q, k, v)))
    assert relative(y, want) < 4e-3
    ones = torch.ones(1, 4096, 1, 8, dtype=torch.bfloat16)
    for order in 'left', 'right':
        y = linear_attention(ones, ones, ones, order=order, eps=0)
        assert torch.equal(y, ones)
