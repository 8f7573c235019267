# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import random_projection


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
