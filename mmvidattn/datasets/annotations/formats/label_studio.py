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
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ....utils.files import write_atomically
from ....utils.printable import count
from ...video_facts import VIDEO_SUFFIXES
from ..video_segment import VideoSegment
from .base import Annotations, Entry, VideoInfo, subset_of, write_json

# Rate at which Label Studio counts frames if its tag <Video> states none.
DEFAULT_RATE = 24., "Label Studio's default; --fps gives another rate"
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


def is_other_export(start: str) -> bool:
    """Return True for a JSON_MIN, CSV or TSV export, which lacks the data."""
    first = start if start.startswith('[') else start.partition('\n')[0]
    return not recognizes(start) and all(
        name in first for name in ('annotation_id', 'annotator'))


def read(path: Path, fps: float | None = None) -> Annotations:
    """Read tasks of an export (JSON) or of an import.

    Timeline labels have frames at the rate ``data.fps`` of the task, or else
    at ``fps``, or else at Label Studio's default of 24. Labels of an
    audio track have seconds. Choices that belong to the entire video become
    segments from 0 s with an unknown end. If a task has several annotations,
    the one marked as ground truth is read, or else the latest. Predictions
    are read if no task has an annotation.
    """
    root = Entry.of_file(path)
    tasks = [root] if isinstance(root.value, dict) else list(root)
    found = Annotations(format='label-studio')
    left_out: Counter[str] = Counter()
    rates: Counter[tuple[float, str]] = Counter()
    annotated = any(_submitted(task) for task in tasks)
    several = ignored = 0
    for task in tasks:
        data = task['data']
        video = _video(data)
        stated = data.read('fps', Entry.positive) or (
            data.read('frame_rate', Entry.positive))
        rate, source = (stated, 'data.fps') if stated else (
            (fps, '--fps') if fps else DEFAULT_RATE)
        subset = data.read('subset', Entry.text)
        found.add_video(video, fps=stated, subset=subset)
        results = predictions = task.read('predictions', list, [])
        if annotated:
            results = _submitted(task)
            several += len(results) > 1
            ignored += len(predictions)
        if not results:
            continue
        segments = [
            segment for region in results[-1].read('result', list, [])
            for segment in _segments(region, video, rate, subset or 'all',
                                     left_out)]
        found.segments += segments
        if any(one.frames for one in segments):
            rates[rate, source] += 1
    found.remarks += [
        f'frames of {count(number, "video")} are counted at {rate:g} fps: '
        f'{source}' for (rate, source), number in rates.items()]
    found.count(several, 'tasks have several annotations: the ground truth, '
                'or else the latest one was read')
    found.count(ignored, 'predictions left out, because the file has '
                'annotations')
    cut = left_out.pop('cut', 0)
    found.count(cut, 'ranges begin before frame 1, and are cut there')
    found.remarks += [f'{count(number, kind)} left out'
                      for kind, number in sorted(left_out.items())]
    return found


def _submitted(task: Entry) -> list[Entry]:
    """Return the annotations that were not skipped, the best one last."""
    found = [one for one in task.read('annotations', list, [])
             if not _flag(one, 'was_cancelled')]
    return sorted(found, key=lambda one: (
        _flag(one, 'ground_truth'), one.read('updated_at', Entry.text, '')))


def _flag(one: Entry, key: str) -> bool:
    return one.read(key, lambda found: found.value is True, False)


def _video(data: Entry) -> str:
    """Return the name of a task's video."""
    named = [data.read(key) for key in ('video', 'video_url', 'url')]
    found = next((one for one in [
        *named, *(value for _, value in data.items()
                  if isinstance(value.value, str)
                  and value.value.lower().endswith(VIDEO_SUFFIXES))]
        if one is not None), None)
    if found is None:
        data.fail('the address of a video, under the key "video"')
    url = found.text()
    local = parse_qs(urlsplit(url).query).get('d')
    return local[0] if local and '/local-files/' in url else url


def _segments(region: Entry, video: str, fps: float, subset: str,
              left_out: Counter[str]) -> Iterator[VideoSegment]:
    """Yield a segment for each range and label of a region.

    Regions and ranges without an action are counted in ``left_out``.
    """
    kind = region['type'].text()
    if kind == 'relation':
        left_out[kind] += 1
        return
    value = region['value']
    ranges, labels = value.read('ranges'), value.read(kind, list, [])
    if kind == 'timelinelabels':
        spans = _spans(value['ranges'], fps, _is_open(region), left_out)
    elif kind == 'labels' and value.read('start') is not None:
        spans = [(value['start'].number(), value['end'].number(), None)]
    elif kind == 'choices' and ranges is None:
        spans = [(0., math.nan, None)]
    else:
        left_out[f'{kind} region'] += 1
        return
    if not labels:
        left_out['unlabeled region'] += 1
    score = region.read('score', Entry.number)
    for start, end, frames in spans:
        for label in labels:
            yield VideoSegment(
                region.read('id', Entry.text, label.where), video, start, end,
                dict(action=label.text()), region.where, subset, frames,
                score)


def _spans(ranges: Entry, fps: float, is_open: bool, left_out: Counter[str]
           ) -> list[tuple[float, float, tuple[int, int]]]:
    """Convert ranges of frames to seconds."""
    spans = []
    for one in ranges:
        first, last = (one[side].number() for side in ('start', 'end'))
        if first != int(first) or last != int(last) or first > last:
            raise ValueError(f'{one.where}: expected frames start <= end, got '
                             f'{first:g} to {last:g}')
        if last < 1:
            left_out['range before frame 1'] += 1
            continue
        left_out['cut'] += first < 1
        first, last = max(1, int(first)), int(last)
        start = (first - 1) / fps
        end = last / fps if last > first else math.nan if is_open else start
        spans.append((start, end, (first, last)))
    return spans


def _is_open(region: Entry) -> bool:
    text = region.read('meta', lambda meta: meta.read('text'))
    return text is not None and UNKNOWN_END in (
        text.value if isinstance(text.value, list) else [text.value])


def write(annotations: Annotations, path: Path,
          url: str = LOCAL_FILES) -> None:
    """Write tasks, and the labeling config to ``<stem>_config.xml``.

    If any segment has a score, all become predictions, which Label Studio
    shows to be accepted or corrected. Otherwise they become annotations.
    Videos without segments become tasks without either.

    Args:
        annotations: Segments, and videos with their frame rates.
        path: File to write.
        url: Start of the address of a video whose name is not an address.

    Raises:
        ValueError: If the frame rate of a video is unknown.
    """
    scored = any(one.score is not None for one in annotations.segments)
    write_json(path, [
        _task(video, segments, annotations.videos[video], scored, url)
        for video, segments in annotations.by_video().items()])
    write_atomically(path.with_name(f'{path.stem}_config.xml'),
                     labeling_config(annotations.labels))


def labeling_config(labels: Sequence[str]) -> str:
    """Return the labeling config of a Label Studio project."""
    view = Element('View')
    timeline = SubElement(view, 'TimelineLabels', name=LABELS, toName=VIDEO)
    for label in labels:
        SubElement(timeline, 'Label', value=label)
    SubElement(view, 'Video', name=VIDEO, value='$video', frameRate='$fps')
    indent(view)
    return tostring(view, encoding='unicode') + '\n'


def _task(video: str, segments: list[VideoSegment], info: VideoInfo,
          scored: bool, url: str) -> dict[str, Any]:
    if not info.fps:
        raise ValueError(
            f'Label Studio counts frames, and the frame rate of {video} is '
            'unknown: give the folder of the videos (--videos), or the rate '
            '(--fps)')
    is_url = '://' in video or video.startswith(ADDRESSES)
    task: dict[str, Any] = dict(data=dict(
        video=video if is_url else url + quote(video), fps=info.fps))
    subset = subset_of(info, segments)
    if subset != 'all':
        task['data']['subset'] = subset
    if not segments:
        return task
    used: set[str] = set()
    regions = [_region(segment, info.fps, i, used)
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


def frames_of(segment: VideoSegment, fps: float) -> tuple[int, int]:
    """Return the first frame of a segment, and the frame after its last one.

    Both are equal for a point and for an unknown end. Other segments have at
    least one frame.
    """
    start = round(segment.start * fps)
    if segment.is_point or segment.is_open:
        return start, start
    return start, max(start + 1, round(segment.end * fps))


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
            timelinelabels=[segment.label])}
    if segment.score is not None:
        region['score'] = segment.score
    if segment.is_open:
        region['meta'] = dict(text=[UNKNOWN_END])
    return region
