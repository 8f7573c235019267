# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch

from mmvidattn.ops.periodic_shift import periodic_shift


def test_small_example():
    # Frames 10, 20, 30; channels 1 to 4 of one head.
    x = torch.tensor([[10., 20., 30.]]).view(1, 3, 1, 1, 1) \
        + torch.arange(1., 5.)
    y = periodic_shift(x).view(3, 4).tolist()
    assert y == [[21, 0, 13, 14], [31, 12, 23, 24], [0, 22, 33, 34]]
    y = periodic_shift(x, 1 / 4, 'previous').view(3, 4).tolist()
    assert y == [[0, 22, 13, 14], [11, 32, 23, 24], [21, 0, 33, 34]]
