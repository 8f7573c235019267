# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""BORIS' projects (.boris) and tables of events (.tsv, .csv).

https://www.boris.unito.it/user_guide
"""
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..video_segment import (
    VideoSegment,
    parse_number,
    read_rows,
    read_text,
    seconds,
)
from .base import (
    Annotations,
    FrameRate,
    by_video,
    is_open,
    is_point,
    label_of,
    labels_of,
    lanes,
)
from .json_file import JsonValue, read_json_values, write_json

# Score of a segment in the comment of its start.
SCORE = re.compile(r'score=([0-9.eE+-]+)')
STATE, POINT = 'State event', 'Point event'
# Names of a column in several versions.
VIDEO = 'Media file name', 'Media file path', 'Media file'
DURATION = 'Media duration (s)', 'Total length'
RATE = 'FPS', 'FPS (frame/s)'
KIND = 'Behavior type', 'Status', 'Type'


class Event(NamedTuple):
    """Coded event: start or end of a state, or a point."""
    time: float
    key: tuple[str, ...]
    label: str
    comment: str
    where: str


def recognizes(start: str) -> bool:
    if start.startswith('{'):
        return '"project_format_version"' in start or (
            '"observations"' in start or '"time_format"' in start)
    return 'Observation id' in start.partition('\n')[0]


def read(path: Path, frame_rate: FrameRate | None = None) -> Annotations:
    """Read a project, or a table of all or of aggregated events.

    Behaviors are labels; subjects and modifiers only determine which start
    and stop belong together. A start without a stop has an unknown end. Only
    the first player of an observation is read. Its queue of videos is divided
    into the single videos.
    """
    found = Annotations(format='boris')
    is_project = read_text(path).lstrip().startswith('{')
    (_read_project if is_project else _read_table)(path, found)
    return found


def _read_project(path: Path, found: Annotations) -> None:
    root = read_json_values(path)
    kinds = {one['code'].name(): one['type'].text()
             for _, one in root['behaviors_conf'].items()}
    live = 0
    for observation, content in root['observations'].items():
        if content['type'].text() != 'MEDIA':
            live += 1
            continue
        videos = [one.name() for one in content['file']['1']]
        if not videos:
            content.fail('the observation has no video in player 1')
        info = content.get('media_info')
        facts = {key: _numbers(info, key) for key in ('length', 'fps')}
        queue = Queue(
            videos, [facts['length'].get(v) for v in videos],
            content.read('time offset', JsonValue.number, 0.), content.where)
        for video in videos:
            found.add_video(video, fps=facts['fps'].get(video),
                            duration=facts['length'].get(video))
        states: dict[tuple[str, ...], list[Event]] = defaultdict(list)
        segments = []
        for one in content['events']:
            event = _event(one)
            if event.label not in kinds:
                one.fail(f'no behavior {event.label} in behaviors_conf')
            if kinds[event.label].startswith('Point'):
                segments.append((event, event.time))
            else:
                states[event.key].append(event)
        segments += [pair for events in states.values()
                     for pair in _pairs(events)]
        _add(found, segments, queue, observation)
    found.count(live, 'observations without video left out')


def _numbers(info: JsonValue | None, key: str) -> dict[str, float]:
    values = info and info.get(key)
    return {} if values is None else {
        name: value.positive() for name, value in values.items()
        if value.value}


def _event(one: JsonValue) -> Event:
    fields = list(one)
    if len(fields) < 4:
        one.fail('expected [time, subject, behavior, modifiers, ...], got '
                 f'{len(fields)} values')
    code = fields[2].name()
    comment = fields[4].text() if len(fields) > 4 else ''
    return Event(fields[0].number(),
                 (fields[1].text(), code, fields[3].text()), code, comment,
                 one.where)


def _pairs(events: Sequence[Event]) -> Iterator[tuple[Event, float]]:
    """Yield each start with the time of its stop; nan if it is missing."""
    events = sorted(events, key=lambda event: event.time)
    for i in range(0, len(events), 2):
        last = i + 1 == len(events)
        yield events[i], math.nan if last else events[i + 1].time


class Queue:
    """Videos of an observation that play one after another.

    Args:
        videos: Names of the videos.
        durations: Their lengths in seconds; None if unknown.
        offset: Time of the observation at the start of the first video.
        where: Place for errors.

    Attributes:
        videos: Names of the videos.
    """

    def __init__(self, videos: Sequence[str],
                 durations: Sequence[float | None], offset: float,
                 where: str) -> None:
        self.videos = videos
        self._starts = [offset]
        for video, duration in zip(videos[:-1], durations):
            if duration is None:
                raise ValueError(
                    f'{where}: the length of {video} is unknown, and other '
                    'videos follow it in the observation')
            self._starts.append(self._starts[-1] + duration)

    def locate(self, start: float, end: float
               ) -> Iterator[tuple[str, float, float]]:
        """Yield the part of each video that a segment covers.

        An unknown end belongs to the video of the start.
        """
        stops = [*self._starts[1:], math.inf]
        for video, first, stop in zip(self.videos, self._starts, stops):
            if start >= stop:
                continue
            if math.isnan(end) or end == start:
                yield video, _shift(start, first), _shift(end, first)
                return
            # A start before the first video is an error that `checked` finds.
            begin = start if video is self.videos[0] else max(start, first)
            yield (video, _shift(begin, first), _shift(min(end, stop), first))
            if end <= stop:
                return


def _shift(time: float, origin: float) -> float:
    # Times have at most microseconds; avoid 1.2000000000000002.
    return time if not origin else round(time - origin, 6)


def _add(found: Annotations, segments: Sequence[tuple[Event, float]],
         queue: Queue, observation: str) -> None:
    segments = sorted(segments, key=lambda pair: pair[0].time)
    for i, (event, end) in enumerate(segments):
        if end < event.time:
            raise ValueError(f'{event.where}: the stop {end:g} s lies before '
                             f'the start {event.time:g} s')
        match = SCORE.search(event.comment)
        score = parse_number(match[1]) if match else math.nan
        for video, start, stop in queue.locate(event.time, end):
            found.segments.append(VideoSegment(
                f'{observation} {i}', video, start, stop,
                dict(action=event.label), event.where,
                score=None if math.isnan(score) else score))


def _read_table(path: Path, found: Annotations) -> None:
    """Read a table; a block of facts may precede its header."""
    header: list[str] = []
    observation, players = '', []
    starts: dict[str, list] = defaultdict(list)
    queues: dict[str, Queue] = {}
    states: dict[str, dict] = defaultdict(lambda: defaultdict(list))
    for row, where in read_rows(path):
        if 'Behavior' in row and ('Time' in row or 'Start (s)' in row):
            header = row
            continue
        if not header:
            if row[0] == 'Observation id':
                observation = ' '.join(row[1:]).strip()
            if row[0].startswith('Player #1'):
                players += row[1:2]
            continue
        if len(row) < len(header):
            raise ValueError(f'{where}: expected {len(header)} fields, got '
                             f'{len(row)}')
        cells = dict(zip(header, row))
        name = cells.get('Observation id', observation)
        if name not in queues:
            queues[name] = _queue(cells, players, where)
            for video, fps, duration in _facts(cells, queues[name].videos):
                found.add_video(video, fps=fps, duration=duration)
        video = _cell(cells, VIDEO)
        if video not in queues[name].videos:
            raise ValueError(
                f'{where}: the observation {name} has several videos, and '
                'this table lacks their lengths: read the project instead')
        modifiers = tuple(cells[key] for key in header
                          if key.startswith('Modifier'))
        key = cells.get('Subject', ''), cells['Behavior'], *modifiers
        comment = cells.get('Comment', cells.get('Comment start', ''))
        if not cells['Behavior']:
            raise ValueError(f'{where}: the behavior is empty')
        if 'Start (s)' in header:
            start = Event(seconds(cells['Start (s)'], where), key,
                          cells['Behavior'], comment, where)
            is_event = _cell(cells, KIND).upper() == 'POINT'
            starts[name].append((start, start.time if is_event else seconds(
                cells['Stop (s)'], where)))
            continue
        event = Event(seconds(cells['Time'], where), key, cells['Behavior'],
                      comment, where)
        kind = _cell(cells, KIND).upper()
        if kind == 'POINT':
            starts[name].append((event, event.time))
        elif kind in ('START', 'STOP'):
            states[name][key].append((event, kind))
        else:
            raise ValueError(f'{where}: the type of an event must be START, '
                             f'STOP or POINT, got {kind!r}')
    if not header:
        raise ValueError(f'{path} lacks a line with the columns Behavior, and '
                         'Time or Start (s)')
    for name, of_key in states.items():
        for events in of_key.values():
            starts[name] += _matched(events)
    for name, segments in starts.items():
        _add(found, segments, queues[name], name)


def _cell(cells: dict[str, str], names: Sequence[str]) -> str:
    return next((cells[name] for name in names if name in cells), '')


def _queue(cells: dict[str, str], players: list[str], where: str) -> Queue:
    """Return the videos of player 1, from the first row of an observation."""
    offset = cells.get('Time offset (s)', '')
    source = cells.get('Source', '').partition('|')[0]
    if source.startswith('player #1:'):
        players = source.removeprefix('player #1:').split(';')
    elif not players:
        players = [_cell(cells, VIDEO)]
    lengths = _cell(cells, DURATION).partition('|')[0].split(';')
    durations = [_positive(text) for text in lengths]
    durations += [None] * (len(players) - len(durations))
    return Queue(players, durations,
                 seconds(offset, where) if offset else 0., where)


def _positive(text: str) -> float | None:
    value = parse_number(text)
    return value if value > 0 else None


def _facts(cells: dict[str, str], names: Sequence[str]
           ) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield the name, frame rate and length of each video."""
    rates = _cell(cells, RATE).partition('|')[0].split(';')
    lengths = _cell(cells, DURATION).partition('|')[0].split(';')
    for i, name in enumerate(names):
        yield (name, _positive(rates[i] if i < len(rates) else rates[0]),
               _positive(lengths[i]) if len(lengths) == len(names) else None)


def _matched(events: Sequence[tuple[Event, str]]
             ) -> Iterator[tuple[Event, float]]:
    """Yield each START with the time of the next STOP."""
    start = None
    for event, kind in sorted(events, key=lambda pair: pair[0].time):
        if kind == 'START':
            if start is not None:
                yield start, math.nan
            start = event
        elif start is None:
            raise ValueError(f'{event.where}: a STOP of {event.label} without '
                             'a START')
        else:
            yield start, event.time
            start = None
    if start is not None:
        yield start, math.nan


def write(annotations: Annotations, path: Path) -> None:
    """Write a project with an observation for each video.

    Overlapping segments of a class get different subjects. A class whose
    segments are all points is a point event. Scores are comments.
    """
    segments = annotations.segments
    points = {label: all(is_point(one) for one in segments
                         if label_of(one) == label)
              for label in labels_of(segments)}
    behaviors = {
        str(i): dict(type=POINT if is_all else STATE, key='', code=label,
                     description='', category='', modifiers='', excluded='',
                     color='', **{'coding map': ''})
        for i, (label, is_all) in enumerate(points.items())}
    observations, subjects = {}, set()
    for video, group in by_video(annotations).items():
        info = annotations.videos[video]
        events: list[tuple[float, list]] = []
        for label, is_all in points.items():
            of_label = [one for one in group if label_of(one) == label]
            for i, lane in enumerate(lanes(of_label), 1):
                subject = '' if i == 1 else f'overlap {i}'
                subjects.add(subject)
                for one in lane:
                    events += _events(one, subject, is_all)
        # A stable sort keeps the start of a short segment before its stop.
        events.sort(key=lambda event: event[0])
        observations[video] = {
            'file': {'1': [video], **{str(i): [] for i in range(2, 9)}},
            'type': 'MEDIA', 'date': '2000-01-01T00:00:00',
            'description': '', 'time offset': 0.0,
            'events': [event for _, event in events],
            'observation time interval': [0, 0],
            'independent_variables': {},
            'visualize_spectrogram': False, 'visualize_waveform': False,
            'close_behaviors_between_videos': False,
            'media_info': {
                'length': {video: info.duration} if info.duration else {},
                'fps': {video: info.fps} if info.fps else {},
                'hasVideo': {video: True}, 'hasAudio': {video: False},
                'offset': {'1': 0.0}}}
    subjects.discard('')
    project: dict[str, Any] = dict(
        time_format='hh:mm:ss', project_date='2000-01-01T00:00:00',
        project_name=path.stem, project_description='',
        project_format_version='7.0',
        subjects_conf={str(i): dict(key='', name=name, description='')
                       for i, name in enumerate(sorted(subjects))},
        behaviors_conf=behaviors, observations=observations,
        behavioral_categories=[], behavioral_categories_config={},
        independent_variables={}, coding_map={}, behaviors_coding_map=[],
        converters={})
    write_json(path, project)


def _events(one: VideoSegment, subject: str,
            is_all_points: bool) -> Iterator[tuple[float, list]]:
    comment = '' if one.score is None else f'score={one.score!r}'
    label = label_of(one)
    yield one.start, [one.start, subject, label, '', comment]
    if not is_all_points and not is_open(one):
        yield one.end, [one.end, subject, label, '', '']
