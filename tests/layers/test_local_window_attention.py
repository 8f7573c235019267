# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.layers import LocalWindowAttention


def _build(window=(2, 3, 3), **kwargs):
    torch.manual_seed(0)
    module = LocalWindowAttention(8, 2, window, **kwargs).double()
    if module.relative_bias is not None:
        torch.nn.init.normal_(module.relative_bias)
    return module


def _by_hand(module, x):
    """Let each token attend to the tokens of its window, in loops."""
    T, H, W, C = x.shape[1:]
    sizes = module.window_size
    qkv = module.qkv(x).unflatten(-1, (3, module.num_heads, -1))
    out = torch.zeros_like(x)
    tokens = [(t, h, w) for t in range(T) for h in range(H) for w in range(W)]
    for token in tokens:
        near = [other for other in tokens if all(
            a // size == b // size
            for a, b, size in zip(token, other, sizes))]
        heads = []
        for g in range(module.num_heads):
            q = qkv[:, token[0], token[1], token[2], 0, g]
            k, v = (torch.stack([qkv[:, a, b, c, i, g] for a, b, c in near], 1)
                    for i in (1, 2))
            scores = torch.einsum('bd,bnd->bn', q, k) / q.shape[-1]**0.5
            if module.relative_bias is not None:
                scores = scores + torch.stack([
                    module.relative_bias[tuple(
                        i - j + size - 1
                        for i, j, size in zip(token, other, sizes)) + (g, )]
                    for other in near])
            heads.append(torch.einsum('bn,bnd->bd', scores.softmax(-1), v))
        out[(slice(None), *token)] = torch.cat(heads, -1)
    return module.proj(out)


@pytest.mark.parametrize('grid, bias', [
    ((2, 3, 3), True), ((4, 3, 3), True), ((3, 4, 4), True),
    ((3, 4, 4), False), ((1, 2, 2), True)], ids=str)
def test_matches_attention_in_loops(grid, bias):
    module = _build(with_relative_bias=bias)
    x = torch.randn(2, *grid, 8, dtype=torch.float64)
    got, want = module(x), _by_hand(module, x)
    assert (got - want).norm() < 1e-12 * want.norm()
    params = list(module.parameters())
    weight = torch.randn_like(got)
    for a, b in zip(torch.autograd.grad((got * weight).sum(), params),
                    torch.autograd.grad((want * weight).sum(), params)):
        # The biases of keys have no effect; their gradients are near zero.
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)
