# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch

from mmvidattn.datasets.feature_windows import (
    dense_long_indices,
    long_padding_mask,
)
from mmvidattn.online.windows import long_memory_frames, work_memory_start

STEPS = torch.arange(60)


@pytest.mark.parametrize('length', [1, 2, 5, 6, 7, 8])
@pytest.mark.parametrize('rate', [1, 2, 3])
def test_work_memory_counts_back_from_its_last_frame(length, rate):
    starts, padded = work_memory_start(STEPS, length, rate)
    for step, start, missing in zip(*(x.tolist()
                                      for x in (STEPS, starts, padded))):
        frames = [t for t in range(step, -1, -rate)][:length]
        assert start == frames[-1]
        assert missing == length - len(frames)


@pytest.mark.parametrize('length', [1, 5, 6, 8])
@pytest.mark.parametrize('rate', [1, 3, 4])
@pytest.mark.parametrize('stretch', [False, True])
def test_long_memory_matches_the_dataset(length, rate, stretch):
    frames, mask = long_memory_frames(STEPS, length, rate, stretch)
    for start in STEPS.tolist():
        want = dense_long_indices(start, length * rate, rate, not stretch)
        assert frames[start].tolist() == want.tolist()
        assert np.array_equal(~mask[start], long_padding_mask(want))
