# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from helpers import relative

from mmvidattn.ops import cheaper_order, linear_attention
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


def test_bfloat16_sums_are_float32():
    """A bfloat16 sum of ones would stop at 256."""
    q, k, v = _qkv((1, ), 300, 300, 2, 8, 8, torch.bfloat16)
    y = linear_attention(q, k, v, order='right')
    want = naive_linear_attention(*(x.double() for x in (q, k, v)))
    assert relative(y, want) < 4e-3
    ones = torch.ones(1, 4096, 1, 8, dtype=torch.bfloat16)
    for order in 'left', 'right':
        y = linear_attention(ones, ones, ones, order=order, eps=0)
        assert torch.equal(y, ones)
