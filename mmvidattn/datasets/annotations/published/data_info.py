# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""``data_info.json`` of LSTR, TeSTra and MAT."""
from pathlib import Path
from typing import NamedTuple

from ..video_segment import read_json


class DataInfo(NamedTuple):
    """The classes and the videos of a data set, in the released order."""
    # With the background, class 0.
    classes: list[str]
    train_videos: list[str]
    test_videos: list[str]
    # None where there is no such class.
    ignore_index: int | None
    feature_rate: float


def read_data_info(path: str | Path, name: str) -> DataInfo:
    """One data set of the file.

    Args:
        path: The file.
        name: ``THUMOS``, ``TVSeries``, ``EK55``, ``EK100``.
    """
    content = read_json(path)
    if name not in content:
        raise ValueError(f'{path} has {", ".join(content) or "nothing"}, and '
                         f'no {name}')
    info = content[name]
    try:
        found = DataInfo(
            list(map(str, info['class_names'])),
            list(map(str, info['train_session_set'])),
            list(map(str, info['test_session_set'])),
            info['ignore_index'] if info['ignore_index'] >= 0 else None,
            float(info['fps']))
    except KeyError as error:
        raise ValueError(f'{path}: {name} has no {error}') from None
    if len(found.classes) != info.get('num_classes', len(found.classes)):
        raise ValueError(f'{path}: {name} has {len(found.classes)} class_names'
                         f', but num_classes is {info["num_classes"]}')
    return found
