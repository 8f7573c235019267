# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from live_fixtures import *  # noqa: F403

from mmvidattn.live import FeatureStreamModel


@pytest.fixture(scope='session')
def model(files):
    return FeatureStreamModel(*files)
