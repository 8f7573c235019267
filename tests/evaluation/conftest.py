# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def mmaction_scope():
    """Look up types in mmaction's scope, like a runner does."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        yield
