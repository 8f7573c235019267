# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from live_fixtures import (  # noqa: F401
    broken_clip,
    camera,
    clip,
    clip_files,
    files,
    web,
)

from mmvidattn.live import FeatureStreamModel


@pytest.fixture(scope='session')
def model(files):  # noqa: F811
    return FeatureStreamModel(*files)
