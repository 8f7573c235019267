# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import fixation_ratio


def test_rejects_unknown_aggregate():
    x = torch.zeros(1, 4)
    with pytest.raises(ValueError, match="'concat', 'add', 'mul'.*'max'"):
        fixation_ratio((x, ), torch.zeros(4, 4), torch.zeros(4), 'max')
