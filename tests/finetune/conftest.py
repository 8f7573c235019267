# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Short path, because mmengine's yapf takes seconds for long ones."""
    with TemporaryDirectory() as folder:
        yield Path(folder)
