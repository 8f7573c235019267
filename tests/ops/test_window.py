# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch

from mmvidattn.ops.window import (
    fit_window,
    window_merge,
    window_partition,
)


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
