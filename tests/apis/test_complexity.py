# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.layers import LinearAttention, SoftmaxAttention


class Fused(nn.Module):
    forward = staticmethod(F.scaled_dot_product_attention)


@pytest.mark.parametrize('device', ['cpu', 'meta'])
@pytest.mark.parametrize('module, shapes, macs', [
    (nn.Linear(6, 10), [(3, 5, 6)], 3 * 5 * 6 * 10),
    (nn.Conv2d(4, 8, 3, stride=2, padding=1), [(2, 4, 8, 8)],
     2 * 8 * 16 * 4 * 9),
    (nn.Conv2d(8, 8, 3, padding=1, groups=8), [(2, 8, 5, 5)], 2 * 8 * 25 * 9),
    (SoftmaxAttention(8, 3, (10, )), [(2, 10, 3, 8), *[(2, 20, 3, 8)] * 2],
     2 * 3 * 2 * 10 * 20 * 8),
    # K^T V and Q (K^T V), and Q times the sum of K for the denominator.
    (LinearAttention(8, 3, (10, ), order='right'),
     [(2, 10, 3, 8), *[(2, 20, 3, 8)] * 2], 2 * 3 * (30 * 8 * 8 + 10 * 8)),
    (LinearAttention(8, 3, (10, ), order='left'),
     [(2, 10, 3, 8), *[(2, 20, 3, 8)] * 2], 2 * 3 * 2 * 10 * 20 * 8),
    (Fused(), [(2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)],
     2 * 3 * 5 * 7 * 16),
    (Fused(), [(2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)],
     2 * 3 * 5 * 7 * (8 + 6)),
    (nn.LayerNorm(6), [(3, 6)], 0)])
def test_matches_closed_formulas(module, shapes, macs, device):
    inputs = [torch.rand(shape, device=device) for shape in shapes]
    count = count_complexity(module.to(device), *inputs)
    assert count.macs == macs
    assert count.params == sum(p.numel() for p in module.parameters())
