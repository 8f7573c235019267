# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Iterable
from pathlib import Path

import cv2
import numpy as np
import pytest


@pytest.fixture(scope='session')
def write_gray() -> Callable[[Path, Iterable[int], float], None]:
    """Function that writes a video of gray frames, 32 x 32."""
    def write(path: Path, levels: Iterable[int], fps: float = 5) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = cv2.VideoWriter(
            str(path), cv2.VideoWriter_fourcc(*'mp4v'), fps, (32, 32))
        for level in levels:
            writer.write(np.full((32, 32, 3), level, np.uint8))
        writer.release()

    return write
