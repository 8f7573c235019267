# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import nn

from mmvidattn.utils.unwrap import unwrap


def test_removes_only_wrappers():
    model = nn.Linear(1, 1)
    model.module = nn.Identity()
    assert unwrap(model) is model
    assert unwrap(nn.DataParallel(model)) is model
