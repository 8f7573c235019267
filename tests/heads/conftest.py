# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def scope():
    """Use the scope of mmaction2."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        yield
