# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def scope():
    """That of mmaction2, whatever the tests before these have left."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        yield
