# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import softmax_attention
from mmvidattn.ops.softmax_attention import naive_softmax_attention


@pytest.mark.parametrize('lead', [(), (2, ), (2, 3)])
@pytest.mark.parametrize('dtype, tolerance', [(torch.float64, 1e-12),
                                              (torch.float32, 1e-5),
                                              (torch.bfloat16, 2e-2)])
def test_matches_naive(lead, dtype, tolerance):
    gen = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(*lead, n, 2, 24, generator=gen).to(dtype).requires_grad_()
        for n in (63, 31, 31))
    y = softmax_attention(q, k, v)
    grads = torch.autograd.grad(y.double().square().sum(), (q, k, v))
    ref = [x.detach().double().requires_grad_() for x in (q, k, v)]
    y_ref = naive_softmax_attention(*ref)
    grads_ref = torch.autograd.grad(y_ref.square().sum(), ref)
    for a, b in zip((y, *grads), (y_ref, *grads_ref)):
        assert a.shape == b.shape
        assert (a.double() - b).norm() / b.norm() < tolerance


def test_scale_replaces_the_default():
    q, k, v = torch.randn(3, 1, 5, 1, 4).unbind(0)
    assert torch.allclose(
        softmax_attention(q, k, v, scale=1.5),
        naive_softmax_attention(q, k, v, scale=1.5),
        atol=1e-6)


def test_golden_attention(golden):
    G = golden('linear/golden_attn.pt')
    q, k, v = (G[name].transpose(1, 2) for name in 'qkv')
    y = softmax_attention(q, k, v).transpose(1, 2)
    assert (y - G['softmax']['out']).norm() < 1e-10 * y.norm()
