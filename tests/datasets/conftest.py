# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import logging
import shutil
from pathlib import Path

import pytest
from feature_set import write_set
from mmengine.logging import MMLogger

from mmvidattn.datasets.annotations.published import THUMOS14

LINES = Path(__file__).parent / 'annotations/lines'


@pytest.fixture(scope='session')
def root(tmp_path_factory):
    """Feature streams of four videos."""
    return write_set(tmp_path_factory.mktemp('features'))


@pytest.fixture
def logged():
    """List of the current logger's messages."""
    logger, records = MMLogger.get_current_instance(), []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.fixture
def thumos14(tmp_path):
    """Annotation folder of both splits; most classes are empty."""
    folder = tmp_path / 'annotation'
    shutil.copytree(LINES / 'thumos14', folder)
    for name in THUMOS14:
        for split in 'val', 'test':
            (folder / f'{name}_{split}.txt').touch()
    return folder


@pytest.fixture(scope='session')
def real(shared_dir):
    """Complete published annotation files."""
    path = shared_dir / 'real'
    if not path.is_dir():
        pytest.skip('there is no ../shared/real beside this checkout')
    return path
