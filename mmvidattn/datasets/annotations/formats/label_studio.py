# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Label Studio's JSON files of tasks with timeline labels.

A task is a video. Label Studio counts frames from 1, and a range includes its
last frame. A range of one frame is a point event.
https://labelstud.io/tags/timelinelabels
"""
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from xml.etree import ElementTree

from ....utils.files import write_atomically
from ...video_facts import VIDEO_SUFFIXES
from ..video_segment import VideoSegment
from .base import (
    Annotations,
    FrameRate,
    VideoInfo,
    by_video,
    frames_of,
    is_open,
    label_of,
    labels_of,
    subset_of,
)
from .json_file import JsonValue, read_json_values, write_json
from .xml_file import add, format_xml

# Address of a file below LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT.
LOCAL_FILES = '/data/local-files/?d='
# Addresses without a host. A path such as /data/a.mp4 is a file.
ADDRESSES = '/data/local-files/', '/data/upload/'
# Names of the controls in the labeling config.
LABELS, VIDEO = 'timelineLabels', 'video'
# Text beside a region whose end is unknown.
UNKNOWN_END = 'end unknown'
REGION_ID = re.compile(r'[A-Za-z0-9_-]{1,64}')


def recognizes(start: str) -> bool:
    # An export has the annotations of a task before its data.
    return '"data"' in start and start[:1] in ('[', '{') or (
        start.startswith('[') and '"annotations"' in start)


def read(path: Path, frame_rate: FrameRate) -> Annotations:
    """Read tasks of an export (JSON) or of an import.

    Timeline labels have frames, and ``data.fps`` of the task their rate.
    Labels of an audio track have seconds. Choices that belong to the entire
    video become segments from 0 s with an unknown end. If a task has several
    annotations, the one marked as ground truth is read, or else the latest.
    Predictions are read if no task has an annotation.
    """
    root = read_json_values(path)
    tasks = [root] if isinstance(root.value, dict) else list(root)
    found = Annotations(format='label-studio')
    left_out: Counter[str] = Counter()
    annotated = any(_submitted(task) for task in tasks)
    several = ignored = 0
    for task in tasks:
        data = task['data']
        video = _video(data)
        fps = data.read('fps', JsonValue.positive) or (
            data.read('frame_rate', JsonValue.positive))
        subset = data.read('subset', JsonValue.name)
        found.add_video(video, fps=fps, subset=subset)
        results = predictions = task.read('predictions', list, [])
        if annotated:
            results = _submitted(task)
            several += len(results) > 1
            ignored += len(predictions)
        if not results:
            continue
        for region in results[-1]['result']:
            found.segments += _segments(
                region, video, fps, frame_rate, subset or 'all', left_out)
    found.count(several, 'tasks have several annotations: the ground truth, '
                'or else the latest one was read')
    found.count(ignored, 'predictions left out, because the file has '
                'annotations')
    for kind, number in sorted(left_out.items()):
        found.count(number, f'regions of type {kind} left out')
    return found


def _submitted(task: JsonValue) -> list[JsonValue]:
    """Return the annotations that were not skipped, the best one last."""
    found = [one for one in task.read('annotations', list, [])
             if not _flag(one, 'was_cancelled')]
    return sorted(found, key=lambda one: (
        _flag(one, 'ground_truth'),
        one.read('updated_at', JsonValue.text, '')))


def _flag(one: JsonValue, key: str) -> bool:
    return one.read(key, lambda found: found.value is True, False)


def _video(data: JsonValue) -> str:
    """Return the name of a task's video."""
    found = next((data.get(key) for key in ('video', 'video_url', 'url')
                  if data.get(key) is not None), None)
    if found is None:
        found = next(
            (value for _, value in data.items()
             if isinstance(value.value, str)
             and value.value.lower().endswith(VIDEO_SUFFIXES)), None)
    if found is None:
        data.fail('expected the address of a video, under the key "video"')
    url = found.name()
    local = parse_qs(urlsplit(url).query).get('d')
    return local[0] if local and '/local-files/' in url else url


def _segments(region: JsonValue, video: str, fps: float | None,
              frame_rate: FrameRate, subset: str,
              left_out: Counter[str]) -> Iterator[VideoSegment]:
    """Yield a segment for each range and label of a region."""
    kind, value = region['type'].text(), region['value']
    if kind == 'timelinelabels':
        rate = frame_rate(video, fps, region.where)
        spans = [_range(one, rate, region) for one in value['ranges']]
    elif kind == 'labels' and value.get('start') is not None:
        spans = [(value['start'].number(), value['end'].number(), None)]
    elif kind == 'choices' and value.get('ranges') is None:
        spans = [(0., math.nan, None)]
    else:
        left_out[kind] += 1
        return
    score = region.read('score', JsonValue.number)
    for start, end, frames in spans:
        for label in value[kind]:
            yield VideoSegment(
                region.read('id', JsonValue.text, label.where), video, start,
                end, dict(action=label.name()), region.where, subset, frames,
                score)


def _range(one: JsonValue, fps: float, region: JsonValue
           ) -> tuple[float, float, tuple[int, int]]:
    """Convert a range of frames to seconds."""
    first, last = one['start'].integer(), one['end'].integer()
    if not 1 <= first <= last:
        one.fail(f'a range must have 1 <= start <= end, got {first} to {last}')
    start = (first - 1) / fps
    end = last / fps if last > first else start
    if last == first and _is_open(region):
        end = math.nan
    return start, end, (first, last)


def _is_open(region: JsonValue) -> bool:
    meta = region.get('meta')
    text = meta and meta.get('text')
    return text is not None and UNKNOWN_END in (
        [one.value for one in text] if isinstance(text.value, list)
        else [text.value])


def write(annotations: Annotations, path: Path, frame_rate: FrameRate,
          url: str = LOCAL_FILES) -> None:
    """Write tasks, and the labeling config to ``<stem>_config.xml``.

    If any segment has a score, all become predictions, which Label Studio
    shows to be accepted or corrected. Otherwise they become annotations.
    Videos without segments become tasks without either.

    Args:
        annotations: Segments and videos.
        path: File to write.
        frame_rate: Frame rate of each video.
        url: Start of the address of a video whose name is not an address.
    """
    scored = any(one.score is not None for one in annotations.segments)
    tasks = [
        _task(video, segments, annotations.videos[video], frame_rate(
            video, annotations.videos[video].fps, f'video {video}'),
            scored, url)
        for video, segments in by_video(annotations).items()]
    write_json(path, tasks)
    write_atomically(path.with_name(f'{path.stem}_config.xml'),
                     labeling_config(labels_of(annotations.segments)))


def labeling_config(labels: Sequence[str]) -> str:
    """Return the labeling config of a Label Studio project."""
    view = ElementTree.Element('View')
    timeline = add(view, 'TimelineLabels', name=LABELS, toName=VIDEO)
    for label in labels:
        add(timeline, 'Label', value=label)
    add(view, 'Video', name=VIDEO, value='$video', frameRate='$fps')
    return format_xml(view).partition('\n')[2]


def _task(video: str, segments: list[VideoSegment], info: VideoInfo,
          fps: float, scored: bool, url: str) -> dict[str, Any]:
    is_url = '://' in video or video.startswith(ADDRESSES)
    task: dict[str, Any] = dict(data=dict(
        video=video if is_url else url + quote(video), fps=fps))
    subset = subset_of(info, segments)
    if subset != 'all':
        task['data']['subset'] = subset
    if not segments:
        return task
    used: set[str] = set()
    regions = [_region(segment, fps, i, used)
               for i, segment in enumerate(segments)]
    if scored:
        scores = [one.score for one in segments if one.score is not None]
        prediction = dict(model_version='mmvidattn', result=regions)
        if scores:
            prediction['score'] = sum(scores) / len(scores)
        task['predictions'] = [prediction]
    else:
        task['annotations'] = [dict(result=regions)]
    return task


def _region(segment: VideoSegment, fps: float, number: int,
            used: set[str]) -> dict[str, Any]:
    start, stop = frames_of(segment, fps)
    name = segment.id
    if not REGION_ID.fullmatch(name) or name in used:
        name = f'segment_{number}'
    used.add(name)
    region: dict[str, Any] = {
        'id': name, 'from_name': LABELS, 'to_name': VIDEO,
        'type': 'timelinelabels',
        'value': dict(
            ranges=[dict(start=start + 1, end=max(start + 1, stop))],
            timelinelabels=[label_of(segment)])}
    if segment.score is not None:
        region['score'] = segment.score
    if is_open(segment):
        region['meta'] = dict(text=[UNKNOWN_END])
    return region
