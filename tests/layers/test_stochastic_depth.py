# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch

from mmvidattn.layers import StochasticDepth


def test_drops_whole_samples_without_rescaling_the_rest():
    torch.manual_seed(0)
    path, x = StochasticDepth(0.3).train(), torch.randn(1000, 2, 3)
    y = path(x)
    dropped = (y == 0).all(-1).all(-1)
    assert torch.allclose(y[~dropped], x[~dropped], rtol=1e-6)
    assert abs(dropped.float().mean() - 0.3) < 0.05


def test_does_nothing_in_testing_or_with_rate_zero():
    x = torch.randn(4, 2)
    assert torch.equal(StochasticDepth(0.3).eval()(x), x)
    assert torch.equal(StochasticDepth(0.).train()(x), x)
