# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attentions within parts of a clip equal masked attention to all tokens."""
import pytest
import torch

from mmvidattn.layers import FactorizedDotAttention, LocalWindowAttention

HEADS = 4
SIZE = torch.tensor([2, 3, 3])


def masked(module, x, seen, bias=0):
    """Attend to the tokens that ``seen`` [G, N, N] allows."""
    q, k, v = (y.flatten(1, 3).unflatten(-1, (HEADS, -1)).transpose(1, 2)
               for y in module.qkv(x).chunk(3, -1))
    scores = q @ k.mT / q.shape[-1]**.5 + bias
    y = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
    return module.proj(y.transpose(1, 2).flatten(2)).view(x.shape)


def factorized(module, x, place):
    """The first half of the heads attends in time, the second in space."""
    same = place[:, None] == place
    in_time, in_space = same[..., 1:].all(-1), same[..., 0]
    return masked(module, x, torch.stack([in_time] * 2 + [in_space] * 2))


def windows(module, x, place):
    window = place // SIZE
    seen = (window[:, None] == window).all(-1).expand(HEADS, -1, -1)
    if module.relative_bias is None:
        return masked(module, x, seen)
    # Distances in other windows lack a bias, and are masked.
    apart = place[:, None] - place + SIZE - 1
    apart = apart.clamp(min=0).minimum(2 * SIZE - 2)
    bias = module.relative_bias[apart.unbind(-1)].permute(2, 0, 1)
    return masked(module, x, seen, bias)


CASES = [(FactorizedDotAttention, {}, factorized, grid)
         for grid in ((3, 2, 5), (1, 3, 3), (4, 1, 1))]
CASES += [(LocalWindowAttention, dict(window_size=SIZE.tolist(),
                                      with_relative_bias=bias), windows, grid)
          for grid, bias in (((2, 3, 3), True), ((4, 3, 3), True), (
              (3, 4, 4), True), ((3, 4, 4), False), ((1, 2, 2), True))]


@pytest.mark.parametrize('cls, options, reference, grid', CASES)
def test_equals_masked_attention(cls, options, reference, grid):
    torch.manual_seed(0)
    module = cls(12, HEADS, **options).double()
    if getattr(module, 'relative_bias', None) is not None:
        torch.nn.init.normal_(module.relative_bias)
    x = torch.randn(2, *grid, 12, dtype=torch.float64)
    got = module(x)
    want = reference(module, x, torch.cartesian_prod(*map(
        torch.arange, grid)))
    assert (got - want).norm() < 1e-12 * want.norm()
    parameters, weight = list(module.parameters()), torch.randn_like(got)
    for a, b in zip(torch.autograd.grad((got * weight).sum(), parameters),
                    torch.autograd.grad((want * weight).sum(), parameters)):
        # The biases of keys have no effect; their gradients are near zero.
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('option', ['attn_drop_rate', 'drop_rate'])
def test_dropout_acts_in_training_only(option):
    x = torch.randn(1, 3, 2, 2, 12)
    attn = FactorizedDotAttention(12, HEADS, **{option: 0.5})
    assert not torch.equal(attn(x), attn(x))
    attn.eval()
    assert torch.equal(attn(x), attn(x))
