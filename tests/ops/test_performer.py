# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import (
    performer_attention,
    performer_features,
    random_projection,
)


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize('m, D', [(24, 24), (64, 16), (21, 8), (5, 8),
                                  (1, 3)])
def test_projection_is_orthogonal_in_blocks(m, D):
    W = random_projection(m, D, _generator())
    assert W.shape == (m, D)
    for block in W.double().split(D):
        block = block / block.norm(dim=-1, keepdim=True)
        assert torch.allclose(
            block @ block.T, torch.eye(len(block), dtype=torch.float64),
            atol=1e-5)


def test_projection_entries_are_normal():
    """Over 4,000 draws, including partial blocks."""
    D = 5
    gen = _generator(1)
    W = torch.stack([random_projection(7, D, gen) for _ in range(4000)])
    # The standard error is 0.016 for the mean and 0.022 for the square.
    assert W.mean(0).abs().max() < 0.08
    assert (W.square().mean(0) - 1).abs().max() < 0.11
    # The lengths vary as in the chi distribution.
    lengths = W.square().sum(-1)
    assert (lengths.mean(0) - D).abs().max() < 0.25
    assert (lengths.var(0) - 2 * D).abs().max() < 1.5


def test_projection_depends_on_the_generator_only():
    W = random_projection(9, 4, _generator())
    assert torch.equal(W, random_projection(9, 4, _generator()))
    assert not torch.equal(W, random_projection(9, 4, _generator(1)))
    torch.manual_seed(0)
    assert torch.equal(W, random_projection(9, 4))


@pytest.mark.parametrize('m, D', [(0, 4), (4, 0), (-1, 4)])
def test_projection_rejects_sizes(m, D):
    with pytest.raises(ValueError, match=f'got {m} and {D}'):
        random_projection(m, D)


@pytest.mark.parametrize('kind', ['favor', 'relu'])
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_features_are_computed_in_float32(kind, dtype):
    gen = _generator()
    x = torch.randn(33, 2, 8, generator=gen).to(dtype)
    W = random_projection(16, 8, gen)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        y = performer_features(x, W, kind=kind, is_query=False)
    want = performer_features(
        x.double(), W.double(), kind=kind, is_query=False)
    assert y.dtype == torch.float32
    assert torch.allclose(y.double(), want, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize('kwargs, message', [
    (dict(kind='softmax'), "kind must be one of.*got 'softmax'"),
    (dict(projection=torch.zeros(6, 4)), r'D=8 from x, got \(6, 4\)'),
    (dict(projection=torch.zeros(8)), r'got \(8,\)'),
])
def test_rejects(kwargs, message):
    x = torch.zeros(3, 1, 8)
    kwargs.setdefault('projection', torch.zeros(6, 8))
    with pytest.raises(ValueError, match=message):
        performer_attention(x, x, x, **kwargs)


@pytest.mark.parametrize('dtype, tolerance', [(torch.float64, 1e-10),
                                              (torch.float32, 1e-5)])
def test_golden_attention(golden, dtype, tolerance):
    G = golden('linear/golden_attn.pt')
    q, k, v = (G[name].transpose(1, 2).to(dtype) for name in 'qkv')
    case = G['performer_favor']
    W = case['W'].to(dtype)
    for y, key in ((performer_features(q, W, is_query=True), 'q_prime'),
                   (performer_features(k, W, is_query=False), 'k_prime'),
                   (performer_attention(q, k, v, W), 'out')):
        want = case[key].transpose(1, 2)
        assert (y - want).norm() < tolerance * want.norm(), key
