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


def test_mask_of_nothing_gives_zero_by_any_kernel(monkeypatch):
    """Some give NaN where all is masked, as the formula does."""

    def textbook(q, k, v, attn_mask, **kwargs):
        scores = (q @ k.mT).masked_fill(~attn_mask, -torch.inf)
        return scores.softmax(dim=-1) @ v

    monkeypatch.setattr(torch.nn.functional, 'scaled_dot_product_attention',
                        textbook)
    q, k, v = (x.requires_grad_() for x in torch.randn(3, 2, 5, 1, 4))
    mask = torch.tensor([[True, False, True, True, False], [False] * 5])
    y = softmax_attention(q, k, v, key_mask=mask)
    assert y.isfinite().all()
    assert torch.equal(y[1], torch.zeros_like(y[1]))
    for grad in torch.autograd.grad(y.square().sum(), (q, k, v)):
        assert grad.isfinite().all()


@pytest.mark.parametrize('dtype, tolerance', [(torch.float64, 1e-10),
                                              (torch.float32, 1e-5)])
def test_golden_attention(golden, dtype, tolerance):
    G = golden('linear/golden_attn.pt')
    q, k, v = (G[name].transpose(1, 2).to(dtype) for name in 'qkv')
    y = softmax_attention(q, k, v).transpose(1, 2)
    assert (y - G['softmax']['out']).norm() < tolerance * y.norm()
