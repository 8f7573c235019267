# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmvidattn.ops import cosformer_attention


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_weights_are_exact_and_not_negative_for_many_tokens(dtype):
    N = 2**14
    k = torch.zeros(N, 1, 1, dtype=dtype)
    k[0], k[-1] = 1, 1
    v = torch.stack([k[:, 0, 0].cumsum(0) < 2, k[:, 0, 0].cumsum(0) > 1])
    y = cosformer_attention(torch.ones_like(k), k, v.T[:, None].float())
    assert y.min() >= 0
    angles = math.pi / 2 * torch.arange(N, dtype=torch.float64) / N
    weights = torch.stack([angles.cos(), angles.flip(0).cos()], dim=-1)
    want = weights / weights.sum(-1, keepdim=True)
    assert (y[:, 0].double() - want).abs().max() < 1e-6


def test_eps_is_a_lower_bound_of_the_denominator():
    q = torch.full((1, 1, 1), 1e-2, dtype=torch.float64)
    assert cosformer_attention(q, q, q, eps=1e-4).item() == pytest.approx(
        1e-2, rel=1e-12)
    assert cosformer_attention(q, q, q, eps=1e-3).item() == pytest.approx(
        1e-3, rel=1e-12)
