# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative

from mmvidattn.ops import softmax_attention
from mmvidattn.ops.softmax_attention import naive_softmax_attention


def test_all_keys_masked_gives_zero_with_any_kernel(monkeypatch):
    """Some kernels return NaN if all keys are masked, like the formula."""

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


@pytest.mark.parametrize('masked', [False, True], ids=['all', 'masked'])
@pytest.mark.parametrize('lead, shape', [
    ((2, ), (9, )), ((2, ), (7, 9)), ((2, ), (3, 1, 9)), ((2, ), (2, 3, 7, 9)),
    ((), (3, 7, 9)), ((2, 4), (4, 1, 7, 9)), ((2, 4), (2, 1, 3, 7, 9))],
    ids=str)
def test_bias_matches_naive(lead, shape, masked):
    gen = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(*lead, n, 3, 5, generator=gen, dtype=torch.float64)
               for n in (7, 9, 9))
    bias = torch.randn(*shape, generator=gen, dtype=torch.float64)
    bias.select(-1, 4).fill_(-torch.inf)
    mask = None
    if masked:
        mask = torch.ones(*lead, 9, dtype=torch.bool)
        mask[..., 2:4] = False
    args = [x.requires_grad_() for x in (q, k, v)]
    outs = [
        attention(*args, bias=bias, key_mask=mask)
        for attention in (softmax_attention, naive_softmax_attention)
    ]
    grads = [torch.autograd.grad(y.square().sum(), args) for y in outs]
    for a, b in zip((outs[0], *grads[0]), (outs[1], *grads[1])):
        assert (a - b).norm() / b.norm() < 1e-12


def test_half_precision_scores_do_not_overflow():
    """Torch 2.4 alone would overflow on a CPU."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(5, 2, 8).half() for _ in range(3))
    q, k = 400 * q, 400 * k
    y = softmax_attention(q, k, v)
    assert y.dtype == torch.float16
    want = naive_softmax_attention(q.double(), k.double(), v.double())
    assert relative(y.double(), want) < 2e-3
