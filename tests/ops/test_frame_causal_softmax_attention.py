# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative, with_gradients

from mmvidattn.ops import frame_causal_softmax_attention
from mmvidattn.ops.frame_causal_softmax_attention import (
    naive_frame_causal_softmax_attention,
)


def _inputs(B=2, T=11, N=3, G=2, D=4, E=5, dtype=torch.float64):
    gen = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(B, T, N, G, width, generator=gen).to(dtype)
               for width in (D, D, E))
    rates = torch.rand(G, generator=gen).to(dtype)
    elapsed = 2 * torch.rand(B, T, generator=gen).to(dtype)
    return q, k, v, rates, elapsed


@pytest.mark.parametrize('window', [1, 2, 4, 11, 30])
@pytest.mark.parametrize('timed', [False, True])
def test_matches_naive(window, timed):
    q, k, v, rates, elapsed = _inputs()
    options = (rates, elapsed) if timed else (None, None)

    def fast(q, k, v, rates):
        return frame_causal_softmax_attention(
            q, k, v, window, rates if timed else None, None, options[1])[0]

    def naive(q, k, v, rates):
        return naive_frame_causal_softmax_attention(
            q, k, v, window, rates if timed else None, options[1])

    for got, want in zip(with_gradients(fast, (q, k, v, rates)),
                         with_gradients(naive, (q, k, v, rates))):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_low_precision(dtype):
    q, k, v, rates, elapsed = _inputs(dtype=dtype)
    y, state = frame_causal_softmax_attention(
        q, k, v, 4, rates, None, elapsed)
    want = naive_frame_causal_softmax_attention(
        *(x.double() for x in (q, k, v)), 4, rates.double(), elapsed.double())
    assert y.dtype == state[0].dtype == dtype
    assert state[2].dtype == torch.float32
    assert relative(y, want) < (1e-6 if dtype == torch.float32 else 2e-2)
