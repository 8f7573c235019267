# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops.periodic_shift import (
    periodic_shift,
    plain_shift,
    token_shift,
)


def _heads(T=5, N=3, G=2, D=12):
    torch.manual_seed(0)
    return torch.randn(2, T, N, G, D, dtype=torch.float64)


def test_small_example():
    # Frames 10, 20, 30; channels 1 to 4 of one head.
    x = torch.tensor([[10., 20., 30.]]).view(1, 3, 1, 1, 1) \
        + torch.arange(1., 5.)
    y = periodic_shift(x).view(3, 4).tolist()
    assert y == [[21, 0, 13, 14], [31, 12, 23, 24], [0, 22, 33, 34]]
    y = periodic_shift(x, 1 / 4, 'previous').view(3, 4).tolist()
    assert y == [[0, 22, 13, 14], [11, 32, 23, 24], [21, 0, 33, 34]]


@pytest.mark.parametrize('shift', [periodic_shift, plain_shift, token_shift])
@pytest.mark.parametrize('kwargs, message', [
    (dict(fraction=0.6), r'fraction.*\[0, 1/2\], got 0.6'),
    (dict(fraction=-0.1), 'fraction.*-0.1'),
    (dict(first='last'), "first.*'next', 'previous'.*'last'")])
def test_rejects(shift, kwargs, message):
    with pytest.raises(ValueError, match=message):
        shift(_heads(), **kwargs)
