# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch

from mmvidattn.ops.window import (
    fit_window,
    window_merge,
    window_partition,
)

SIZES = [((4, 6, 8), (2, 3, 4)), ((5, 7, 9), (2, 3, 4)), ((1, 1, 1), (1, 1,
                                                                     1)),
         ((3, 4, 5), (3, 4, 5)), ((3, 4, 5), (4, 7, 7)), ((8, 7, 13), (8, 7,
                                                                       7))]
each_size = pytest.mark.parametrize(
    'grid, window', SIZES, ids=lambda size: 'x'.join(map(str, size)))


@each_size
def test_gradient_of_partition_is_merge(grid, window):
    x = torch.randn(1, *grid, 2, requires_grad=True)
    windows, _ = window_partition(x, window)
    weight = torch.randn_like(windows)
    windows.backward(weight)
    assert torch.equal(x.grad, window_merge(weight, window, grid))


def test_fit_window_clips_to_the_grid():
    assert fit_window((8, 7, 7), (4, 9, 7)) == (4, 7, 7)


def test_rejects():
    with pytest.raises(ValueError, match=r'\[B, T, H, W, C\], got \(2, 3\)'):
        window_partition(torch.zeros(2, 3), (1, 1, 1))
    for size in (2, 0, 2), (2, 2), (2, 2, 2, 2):
        with pytest.raises(ValueError, match=re.escape(f'got {size}')):
            window_partition(torch.zeros(1, 4, 4, 4, 1), size)
    with pytest.raises(ValueError, match=r'windows must be \[B, 6, 8, C\]'):
        window_merge(torch.zeros(1, 6, 7, 1), (2, 2, 2), (1, 4, 6))
