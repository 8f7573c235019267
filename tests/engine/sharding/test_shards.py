# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.engine.sharding.shards import cut_axis


@pytest.mark.parametrize('shape, number, axis', [
    ((64, 3), 4, 0), ((64, ), 3, 0), ((), 2, 0), ((5, ), 4, 0),
    # Position tables, and few rows.
    ((1, 8, 4, 4, 64), 2, 4), ((1, 3, 5), 2, 0), ((3, 64), 2, 1),
    # 22 of 64 rows are at most 5 % more than a third; 9 of 25 are not.
    ((64, 9), 3, 0), ((25, 9), 3, 1), ((25, 10), 3, 0), ((0, 4), 2, 0)])
def test_cuts_an_axis_that_is_long_enough(shape, number, axis):
    assert cut_axis(torch.Size(shape), number) == axis
