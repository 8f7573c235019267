# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops.periodic_shift import (
    naive_periodic_shift,
    periodic_shift,
    plain_shift,
    token_shift,
)

FRACTIONS = [0, 1 / 8, 1 / 4, 1 / 3, 1 / 2]


def _heads(T=5, N=3, G=2, D=12):
    torch.manual_seed(0)
    return torch.randn(2, T, N, G, D, dtype=torch.float64)


@pytest.mark.parametrize('first', ['next', 'previous'])
@pytest.mark.parametrize('fraction', FRACTIONS)
@pytest.mark.parametrize('T', [1, 2, 5])
def test_matches_naive(T, fraction, first):
    x = _heads(T).requires_grad_()
    y = periodic_shift(x, fraction, first)
    want = naive_periodic_shift(x, fraction, first)
    assert torch.equal(y, want)
    weight = torch.randn_like(y)
    # With an addend that keeps a graph where everything is shifted away.
    got, = torch.autograd.grad((y * weight).sum() + 0 * x.sum(), x)
    wanted, = torch.autograd.grad((want * weight).sum() + 0 * x.sum(), x)
    assert torch.equal(got, wanted)


def test_matches_a_small_case_written_out():
    # Frames 10, 20, 30; channels 1 to 4 of one head.
    x = torch.tensor([[10., 20., 30.]]).view(1, 3, 1, 1, 1) \
        + torch.arange(1., 5.)
    y = periodic_shift(x).view(3, 4).tolist()
    assert y == [[21, 0, 13, 14], [31, 12, 23, 24], [0, 22, 33, 34]]
    y = periodic_shift(x, 1 / 4, 'previous').view(3, 4).tolist()
    assert y == [[0, 22, 13, 14], [11, 32, 23, 24], [21, 0, 33, 34]]


@pytest.mark.parametrize('first', ['next', 'previous'])
@pytest.mark.parametrize('fraction', FRACTIONS)
def test_plain_shift_is_that_of_a_single_head(fraction, first):
    x = _heads()
    want = naive_periodic_shift(x.flatten(-2).unsqueeze(-2), fraction, first)
    assert torch.equal(
        plain_shift(x, fraction, first).flatten(-2), want.squeeze(-2))


def test_plain_shift_moves_the_first_heads_only():
    x = _heads(G=4)
    moved = (plain_shift(x, 1 / 4) != x).flatten(0, 2).any(0).any(-1)
    assert moved.tolist() == [True, True, False, False]
    assert (periodic_shift(x, 1 / 4) != x).flatten(0, 2).any(0).any(-1).all()


@pytest.mark.parametrize('first', ['next', 'previous'])
@pytest.mark.parametrize('fraction', FRACTIONS)
def test_token_shift_moves_the_class_token_only(fraction, first):
    x = _heads()[..., 0, :]
    y = token_shift(x, fraction, first)
    want = naive_periodic_shift(x[:, :, :1, None], fraction, first)
    assert torch.equal(y[:, :, :1], want.squeeze(3))
    assert torch.equal(y[:, :, 1:], x[:, :, 1:])


@pytest.mark.parametrize('shift', [periodic_shift, plain_shift, token_shift])
@pytest.mark.parametrize('kwargs, message', [
    (dict(fraction=0.6), r'fraction.*\[0, 1/2\], got 0.6'),
    (dict(fraction=-0.1), 'fraction.*-0.1'),
    (dict(first='last'), "first.*'next', 'previous'.*'last'")])
def test_rejects(shift, kwargs, message):
    with pytest.raises(ValueError, match=message):
        shift(_heads(), **kwargs)
