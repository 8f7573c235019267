# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of ActivityNet's JSON format, which other data sets also use."""
from collections.abc import Iterator
from pathlib import Path

from ..formats import activitynet
from ..video_segment import VideoSegment, segment_reader


@segment_reader
def read_activitynet(path: str | Path) -> Iterator[VideoSegment]:
    """Read segments with :func:`~..formats.activitynet.read`."""
    yield from activitynet.read(Path(path)).segments
