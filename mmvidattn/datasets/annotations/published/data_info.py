# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader for ``data_info.json`` of LSTR, TeSTra and MAT."""
from pathlib import Path
from typing import NamedTuple

from ..video_segment import read_json


class DataInfo(NamedTuple):
    """Classes and videos of a data set, in the order of the file.

    Attributes:
        classes: Class names, starting with the background.
        train_videos: Training videos.
        test_videos: Test videos.
        ignore_index: Class that metrics ignore; None if there is none.
        feature_rate: Steps per second.
    """
    classes: list[str]
    train_videos: list[str]
    test_videos: list[str]
    ignore_index: int | None
    feature_rate: float


def read_data_info(path: str | Path, name: str) -> DataInfo:
    """Read the entry of one data set.

    Args:
        path: File.
        name: ``THUMOS``, ``TVSeries``, ``EK55`` or ``EK100``.
    """
    content = read_json(path)
    if name not in content:
        raise ValueError(f'{path} must have {name}, got only '
                         + (', '.join(content) or 'an empty object'))
    info = content[name]
    try:
        result = DataInfo(
            list(map(str, info['class_names'])),
            list(map(str, info['train_session_set'])),
            list(map(str, info['test_session_set'])),
            info['ignore_index'] if info['ignore_index'] >= 0 else None,
            float(info['fps']))
    except KeyError as error:
        raise ValueError(f'{path}: {name} lacks {error}') from None
    if len(result.classes) != info.get('num_classes', len(result.classes)):
        raise ValueError(
            f'{path}: {name} has {len(result.classes)} class_names, but '
            f'num_classes is {info["num_classes"]}')
    return result
