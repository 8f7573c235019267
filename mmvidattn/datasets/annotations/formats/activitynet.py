# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ActivityNet's JSON files of annotations and of predictions."""
import math
from pathlib import Path
from typing import Any

from ..video_segment import VideoSegment
from .base import Annotations, Entry, VideoInfo, subset_of, write_json


def recognizes(start: str) -> bool:
    return start.startswith('{') and any(
        f'"{key}"' in start for key in ('database', 'results', 'annotations'))


def read(path: Path) -> Annotations:
    """Read annotations or predictions.

    Annotations are ``{video: {"subset": ..., "duration": ..., "annotations":
    [{"segment": [start, end], "label": ..., "score": ...}]}}``, at the top
    level or under the key ``database``. Predictions are ``{video: [{"segment":
    ..., "label": ..., "score": ...}]}`` under the key ``results``. ``end`` may
    be null if it is unknown.
    """
    root = Entry.of_file(path)
    found = Annotations(format='activitynet')
    results = root.read('results')
    for video, info in (results or root.read('database') or root).items():
        subset, segments = None, info
        if results is None:
            subset = info.read('subset', Entry.text)
            found.add_video(video, subset=subset, duration=info.read(
                'duration', Entry.positive))
            segments = info['annotations']
        else:
            found.add_video(video)
        for i, one in enumerate(segments):
            found.segments.append(_segment(one, video, i, subset or 'all'))
    return found


def _segment(one: Entry, video: str, i: int, subset: str) -> VideoSegment:
    times = [*one['segment']]
    if len(times) != 2:
        one['segment'].fail('[start, end]')
    start, end = times
    return VideoSegment(
        f'{video}_{i}', video, start.number(),
        math.nan if end.value is None else end.number(),
        dict(action=one['label'].text()), one.where, subset,
        score=one.read('score', Entry.number))


def write(annotations: Annotations, path: Path) -> None:
    """Write predictions if all segments have a score, or else annotations."""
    groups = annotations.by_video()
    scored = [segment.score is not None for segment in annotations.segments]
    if scored and all(scored):
        content = dict(
            version='1.3', results={
                video: [_entry(segment) for segment in segments]
                for video, segments in groups.items()}, external_data={})
    else:
        content = dict(version='1.3', database={
            video: _video(segments, annotations.videos[video])
            for video, segments in groups.items()})
    write_json(path, content)


def _video(segments: list[VideoSegment], info: VideoInfo) -> dict[str, Any]:
    facts: dict[str, Any] = dict(subset=subset_of(info, segments))
    if info.duration is not None:
        facts['duration'] = info.duration
    return dict(facts, annotations=[_entry(segment) for segment in segments])


def _entry(segment: VideoSegment) -> dict[str, Any]:
    end = None if segment.is_open else segment.end
    entry = dict(label=segment.label, segment=[segment.start, end])
    if segment.score is not None:
        entry['score'] = segment.score
    return entry
