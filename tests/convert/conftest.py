# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def mmaction_scope():
    """Use mmaction2's registries, like a run of a config."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        yield
