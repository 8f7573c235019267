# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import logging

import pytest
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def mmaction_scope():
    """Types are looked up as in a run of a config."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        yield


@pytest.fixture
def logged():
    """Messages of the current logger, as a list."""
    logger, records = MMLogger.get_current_instance(), []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)
