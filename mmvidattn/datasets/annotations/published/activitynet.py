# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of ActivityNet's JSON format, which other data sets also use."""
from collections.abc import Iterator
from pathlib import Path

from ..video_segment import VideoSegment, read_json, seconds, segment_reader


@segment_reader
def read_activitynet(path: str | Path) -> Iterator[VideoSegment]:
    """Read segments from a JSON file.

    Format: ``{video: {"subset": ..., "annotations": [{"segment": [start,
    end], "label": ...}]}}``, at the top level or under the key ``database``.
    """
    content = read_json(path)
    try:
        for video, info in content.get('database', content).items():
            for i, one in enumerate(info['annotations']):
                where = f'{path}, {video}, annotation {i}'
                start, end = (seconds(time, where) for time in one['segment'])
                yield VideoSegment(
                    f'{video}_{i}', video, start, end,
                    dict(action=str(one['label'])), where,
                    str(info.get('subset', 'all')))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f'{path} must be {{video: {{"annotations": [{{"segment": [start, '
            f'end], "label": ...}}]}}}}: {error!r}') from None
