# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CSV file of marks: a person's judgments of detected events."""
import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ....utils.arguments import check_arguments
from ..video_names import VideoNames
from ..video_segment import VideoSegment, read_columns, seconds

RIGHT, WRONG, CLASS, MISSED = MARKS = 'right', 'wrong', 'class', 'missed'


class Mark(NamedTuple):
    """Judgment of a detected event, or an event that was not detected.

    Attributes:
        video: Path of the video, or the name of a live source.
        start: First second.
        end: Last second.
        label: Class name. For the mark ``'class'``, the class that occurs
            instead of the detected one; for ``'wrong'``, the detected class.
        mark: ``'right'``; ``'wrong'`` if the detected class does not occur in
            the segment; ``'class'`` if another class occurs; ``'missed'`` if
            the event was not detected.
        detected: Class that was detected; empty for ``'missed'``.
        score: Highest score of the detected event.
        began: Time (UTC, ISO 8601) of second 0 of a live source; empty for a
            recording.
        clip: Path of the event's clip, relative to the file of marks.
    """
    video: str
    start: float
    end: float
    label: str
    mark: str
    detected: str = ''
    score: float | None = None
    began: str = ''
    clip: str = ''

    @property
    def key(self) -> tuple:
        """Identity of the marked event; a file marks an event only once."""
        what = self.detected or ('', self.label)
        return self.video, self.began, what, self.start


def read_marks(path: str | Path) -> list[Mark]:
    """Read marks from a CSV file.

    Required columns are ``video`` (or ``file``), ``start`` and ``end`` (or
    ``stop``) in seconds, ``label`` and ``mark``. The other fields of
    :class:`Mark` are optional columns.

    Raises:
        ValueError: If the file is invalid, or marks an event twice. The error
            names the line.
    """
    needed = 'video', 'start', 'end', 'label', 'mark'
    marks: dict[tuple, tuple[Mark, str]] = {}
    for row, where in read_columns(path, needed,
                                   dict(file='video', stop='end')):
        mark = _parse(row, where)
        if mark.key in marks:
            raise ValueError(f'{where}: this event is already marked in '
                             f'{marks[mark.key][1]}')
        marks[mark.key] = mark, where
    return [mark for mark, _ in marks.values()]


def _parse(row: dict[str, str], where: str) -> Mark:
    kind, label = row['mark'].lower(), row['label']
    if kind not in MARKS:
        raise ValueError(f'{where}: mark must be one of {", ".join(MARKS)}, '
                         f'got {row["mark"]!r}')
    if not row['video'] or not label:
        raise ValueError(f'{where}: video and label must not be empty')
    start, end = (seconds(row[name], where) for name in ('start', 'end'))
    if not 0 <= start < end:
        raise ValueError(f'{where}: a mark must have 0 <= start < end, got '
                         f'{start:g} to {end:g} s')
    detected = row.get('detected', '')
    if kind == CLASS and detected in ('', label):
        raise ValueError(f'{where}: the mark class needs the detected class '
                         f'in the column detected, another one than {label}, '
                         f'got {detected!r}')
    if kind in (RIGHT, WRONG) and detected not in ('', label):
        raise ValueError(f'{where}: label and detected must be equal for the '
                         f'mark {kind}, got {label} and {detected}')
    if kind == MISSED and detected:
        raise ValueError(f'{where}: detected must be empty for the mark '
                         f'missed, got {detected}')
    score = row.get('score')
    return Mark(row['video'], start, end, label, kind,
                '' if kind == MISSED else detected or label,
                seconds(score, where) if score else None,
                row.get('began', ''), row.get('clip', ''))


def format_marks(marks: Iterable[Mark]) -> str:
    """Format marks as a CSV file, which :func:`read_marks` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(Mark._fields)
    # The shortest text of a number that is read as the same number.
    writer.writerows(marks)
    return text.getvalue()


def positives(marks: Iterable[Mark]) -> list[VideoSegment]:
    """Return the events of marks: right, missed, or of a corrected class.

    Marks of live sources are left out, because no file has their times.
    """
    return [_segment(mark, mark.label) for mark in marks
            if mark.mark != WRONG and not mark.began]


def negatives(marks: Iterable[Mark]) -> list[VideoSegment]:
    """Return segments in which the labeled class does not occur.

    Marks of live sources are left out, because no file has their times.
    """
    return [_segment(mark, mark.detected) for mark in marks
            if mark.mark in (WRONG, CLASS) and not mark.began]


def _segment(mark: Mark, label: str) -> VideoSegment:
    where = f'mark of {mark.video} at {mark.start:g} s'
    return VideoSegment(f'{where}: {label}', mark.video, mark.start, mark.end,
                        dict(action=label), where)


def known_spans(marks: Iterable[Mark]) -> dict[str, list[tuple[float, float]]]:
    """Return the marked parts of each video, without overlap, in order.

    If a video has no other annotations, only these parts are labeled. Marks
    of live sources are left out.
    """
    spans = defaultdict(list)
    recorded = [mark for mark in marks if not mark.began]
    for mark in sorted(recorded, key=lambda mark: mark.start):
        known = spans[mark.video]
        if known and mark.start <= known[-1][1]:
            known[-1] = known[-1][0], max(known[-1][1], mark.end)
        else:
            known.append((mark.start, mark.end))
    return dict(spans)


@check_arguments
def apply_marks(segments: Sequence[VideoSegment],
                marks: Sequence[Mark]) -> list[VideoSegment]:
    """Correct segments by marks.

    First, the segments of :func:`negatives` are cut out of segments of the
    same video and class. Then each segment of :func:`positives` is added,
    unless it overlaps a segment of the same video and class by at least half
    of the shorter of the two. The order of the marks has no effect on the
    cuts.

    A mark belongs to the video whose name is the end of the path in the mark,
    without the suffix: a mark of ``videos/day/1.mp4`` belongs to the video
    ``day/1``. Positives of other videos are added with the name in the mark.

    Args:
        segments: Annotated or predicted segments, labeled in part ``action``.
        marks: Marks of :func:`read_marks`.

    Raises:
        ValueError: If several videos of the segments match a mark.
    """
    names = VideoNames(segment.video for segment in segments)
    marks = [mark._replace(video=names.find(mark.video) or mark.video)
             for mark in marks]
    result = list(segments)
    for negative in negatives(marks):
        result = [piece for segment in result
                  for piece in _cut(segment, negative)]
    for positive in positives(marks):
        if not any(_is_same(segment, positive) for segment in result):
            result.append(positive)
    return result


def _overlap(one: VideoSegment, other: VideoSegment) -> float:
    """Return the common seconds of segments of a class; 0 for others."""
    if one.video != other.video or (
            str(one.labels.get('action')) != other.labels['action']):
        return 0.
    return max(0., min(one.end, other.end) - max(one.start, other.start))


def _is_same(one: VideoSegment, other: VideoSegment) -> bool:
    common = _overlap(one, other)
    return common > 0 and 2 * common >= min(
        one.end - one.start, other.end - other.start)


def _cut(segment: VideoSegment, negative: VideoSegment) -> list[VideoSegment]:
    """Return what remains of a segment outside of a negative one."""
    if not _overlap(segment, negative):
        return [segment]
    before = segment._replace(end=negative.start)
    after = segment._replace(start=negative.end)
    pieces = [piece._replace(frames=None) for piece in (before, after)
              if piece.start < piece.end]
    if len(pieces) == 2:
        # Ids must be unique.
        pieces[1] = pieces[1]._replace(
            id=f'{segment.id} from {negative.end:g} s')
    return pieces
