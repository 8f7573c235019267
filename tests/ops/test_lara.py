# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
import torch.nn.functional as F
from helpers import relative

from mmvidattn.ops import landmark_grid, lara_attention
from mmvidattn.ops.lara import naive_lara_attention


def _tensors(lead, N, M, G, D, E, C, dtype=torch.float64):
    """Return random q, k, v, query_landmarks, key_landmarks and omega."""
    gen = torch.Generator().manual_seed(0)
    return tuple(
        torch.randn(*lead, length, G, width, generator=gen).to(dtype)
        for length, width in [(N, D), (M, D), (M, E), (C, D), (C, D), (C, D)])


def test_many_samples_approach_softmax_attention():
    """For w ~ N(0, sqrt(D)), E[exp(xi(q, w) + xi(k, w))] = exp(q k / sqrt(D)).

    Landmarks at zero give all samples the same weight.
    """
    gen = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 6, 1, 4, generator=gen).double().unbind(0)
    q, k = q / 2, k / 2
    omega = 4**0.25 * torch.randn(1, 2000, 1, 4, generator=gen).double()
    zero = torch.zeros_like(omega)
    want = F.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)

    def error(num_samples):
        landmarks = (x[:, :num_samples] for x in (zero, zero, omega))
        y = lara_attention(q, k, v, *landmarks)
        return relative(y, want)

    assert error(2000) < 0.03 < 0.1 < error(5)


@pytest.mark.parametrize('dtype, tolerance', [
    pytest.param(torch.float16, 2e-3, id='fp16'),
    pytest.param(torch.bfloat16, 2e-2, id='bf16')])
@pytest.mark.parametrize('autocast', [False, True])
def test_half_precision_with_large_activations(dtype, tolerance, autocast):
    tensors = [8 * x for x in _tensors((1, ), 500, 500, 1, 16, 16, 9, dtype)]
    want = lara_attention(*(x.double() for x in tensors))
    if autocast:
        tensors = [x.float() for x in tensors]
        tolerance = 1e-4
    with torch.autocast('cpu', dtype=dtype, enabled=autocast):
        y = lara_attention(*tensors)
    assert y.isfinite().all() and relative(y, want) < tolerance


def test_lower_bound_of_weights_holds_in_float16():
    """A landmark whose weight is only the bound can dominate the result."""
    # The first landmark has the query's attention but a vanishing share.
    landmarks = torch.tensor([[0., 0.], [30., 0.]]).view(1, 2, 1, 2)
    tensors = [
        torch.tensor([[3., 0.], [-40., 0.]]).view(1, 2, 1, 2),
        torch.zeros(1, 2, 1, 2),
        torch.randn(1, 2, 1, 2), landmarks, torch.zeros(1, 2, 1, 2)
    ]
    y = lara_attention(*(x.half() for x in tensors))
    want = naive_lara_attention(*(x.half().double() for x in tensors))
    assert y.isfinite().all() and relative(y, want) < 1e-3


@pytest.mark.parametrize('dtype, scale, tolerance', [
    pytest.param(torch.bfloat16, 10, 5e-3, id='bf16'),
    pytest.param(torch.float16, 40000, 5e-3, id='fp16-sum-overflows')])
def test_landmarks_are_added_in_float32(dtype, scale, tolerance):
    q, k, v, *landmarks = _tensors((2, ), 63, 63, 2, 16, 16, 9, dtype)
    if dtype == torch.float16:
        # Equal signs, so that the sum exceeds the largest float16.
        landmarks = [x.abs().clamp(1) / x.abs().clamp(1) for x in landmarks]
    tensors = [q, k, v, *(scale * x for x in landmarks[:2])]
    want = lara_attention(*(x.double() for x in tensors))
    got = lara_attention(*tensors)
    assert got.isfinite().all() and relative(got, want) < tolerance


@pytest.mark.parametrize('shape, num_landmarks, grid', [
    ((17, 17), 49, (7, 7)),
    ((14, 28), 49, (7, 7)),
    ((5, 17), 49, (5, 7)),
    ((197, 1), 49, (49, 1)),
    ((16, ), 49, (16, )),
    ((96, ), 49, (49, )),
    ((16, 17, 17), 49, (3, 4, 4)),
    ((2, 17, 17), 49, (1, 7, 7)),
    ((8, 4, 4), 16, (4, 2, 2)),
    ((2, 2, 2), 49, (2, 2, 2)),
    ((1, 1, 1), 1, (1, 1, 1)),
])
def test_landmark_grid(shape, num_landmarks, grid):
    got = landmark_grid(shape, num_landmarks)
    assert math.prod(got) <= num_landmarks
    assert got == grid
