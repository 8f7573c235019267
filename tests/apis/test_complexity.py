# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.layers import LinearAttention, SoftmaxAttention


@pytest.mark.parametrize('device', ['cpu', 'meta'])
def test_layers_match_closed_formulas(device):
    def macs(module, *shape):
        return count_complexity(
            module.to(device), torch.empty(shape, device=device)).macs

    assert macs(nn.Linear(6, 10), 3, 5, 6) == 3 * 5 * 6 * 10
    assert macs(nn.Conv2d(4, 8, 3, stride=2, padding=1), 2, 4, 8,
                8) == 2 * 8 * 16 * 4 * 9
    assert macs(nn.Conv2d(8, 8, 3, padding=1, groups=8), 2, 8, 5,
                5) == 2 * 8 * 25 * 9


@pytest.mark.parametrize('device', ['cpu', 'meta'])
def test_attention_matches_closed_formulas(device):
    def macs(attention, N, M, G=3, D=8):
        q, k = (torch.rand(2, n, G, D, device=device) for n in (N, M))
        return count_complexity(attention, q, k, k).macs

    softmax = SoftmaxAttention(8, 3, (10, ))
    assert macs(softmax, 10, 20) == 2 * 3 * 2 * 10 * 20 * 8
    right = LinearAttention(8, 3, (10, ), order='right')
    left = LinearAttention(8, 3, (10, ), order='left')
    # K^T V and Q (K^T V), and Q times the sum of K for the denominator.
    assert macs(right, 10, 20) == 2 * 3 * (30 * 8 * 8 + 10 * 8)
    assert macs(left, 10, 20) == 2 * 3 * 2 * 10 * 20 * 8


@pytest.mark.parametrize('device', ['cpu', 'meta'])
def test_fused_attention_counts_as_two_products(device):
    class Attention(nn.Module):
        forward = staticmethod(F.scaled_dot_product_attention)

    shapes = (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)
    count = count_complexity(
        Attention(), *(torch.rand(shape, device=device) for shape in shapes))
    assert count.macs == 2 * 3 * 5 * 7 * (8 + 6)


def test_elementwise_work_counts():
    class Model(nn.Module):

        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x):
            return F.gelu(self.norm(x)).softmax(-1).sum() + x.t().clone().max()

    count = count_complexity(Model(), torch.rand(3, 4))
    # norm 5, gelu 1, softmax 5, sum 1, max 1 per element, and one addition
    assert count.elementwise == 13 * 12 + 1
    assert count.macs == 0 and count.flops == count.elementwise
    assert not count.uncounted


def test_an_operator_without_a_formula_is_reported():
    class Model(nn.Module):

        def forward(self, x):
            return torch.linalg.qr(x)[0]

    count = count_complexity(Model(), torch.rand(3, 3))
    assert list(count.uncounted) == ['aten.linalg_qr']


@pytest.mark.parametrize('name, function, operations', [
    ('argmin', lambda x: x.argmin(-1), 24),
    ('argmax', lambda x: x.argmax(-1), 24),
    ('amin', lambda x: x.amin(-1), 24),
    ('logsumexp', lambda x: x.logsumexp(-1), 4 * 24),
    ('norm', lambda x: torch.linalg.vector_norm(x, dim=-1), 2 * 24),
    ('var', lambda x: x.var(-1), 3 * 24),
    ('topk', lambda x: x.topk(2).values, 24),
    # Sorting takes 3 rounds of comparisons for 6 numbers, and 1 for 2 numbers.
    ('sort', lambda x: x.sort(-1).values, 3 * 24),
    ('sort_rows', lambda x: x.sort(dim=-2).values, 24),
    ('gather', lambda x: x.gather(-1, x.long()), 0),
    ('scatter', lambda x: x.scatter(-1, x[..., :1].long(), 1.), 0),
    ('floor_divide', lambda x: x // 2, 24),
    ('adaptive_pool', lambda x: F.adaptive_avg_pool2d(x, (1, 2)), 24),
    ('pool', lambda x: F.avg_pool2d(x, 2, stride=1), 2 * 5 * 4),
    ('bilinear', lambda x: F.interpolate(
        x[None], size=(3, 3), mode='bilinear'), 8 * 18),
], ids=lambda x: x if isinstance(x, str) else '')
def test_operators_have_expected_cost(name, function, operations):
    class Model(nn.Module):

        def forward(self, x):
            return function(x)

    count = count_complexity(Model(), torch.zeros(2, 2, 6, device='meta'))
    assert count.elementwise == operations
    assert count.macs == 0 and not count.uncounted
