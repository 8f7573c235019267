# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def mmaction_scope():
    """Types are looked up as in a run of a config."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        yield
