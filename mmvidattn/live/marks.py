# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Marks of the events on the page: right, wrong, missed, another class."""
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..datasets.annotations.custom.marks_csv import (
    CLASS,
    MISSED,
    RIGHT,
    WRONG,
    Mark,
    format_marks,
    read_marks,
)
from ..utils.files import write_atomically
from ..utils.lock import wait_for_folder
from .run import Run

# Request to remove a mark.
NONE = 'none'
# Maximum number of marks in a file, and of a source's marks on the page (the
# latest ones).
MAX_MARKS, MAX_SHOWN = 20_000, 500
# A live source whose second 0 differs by fewer seconds is the same one after
# a restart.
SAME_SECONDS = 10
# Function that returns the path of an event's clip.
Clip = Callable[[Mapping], Path]


class MarkError(Exception):
    """A mark could not be saved; the message is for users of the page."""


class EventMarks:
    """Marks of the events of a page's runs, in a file (:class:`Mark`).

    A change is on the disk when :meth:`change` returns: the file is replaced
    by a complete new one, so that no failure damages it. Before, the file is
    read again, so that changes by different programs are kept. Programs that
    change the same file wait for each other.

    Args:
        path: CSV file, one for all sources. It may already exist.
        runs: The runs.
        clips: For each run, a function that returns the path of an event's
            clip. Defaults to no clips.

    Raises:
        ValueError: If the file exists and is invalid.

    Attributes:
        revision: Number of changes by this process.
    """

    def __init__(self, path: str | Path, runs: Sequence[Run],
                 clips: Sequence[Clip] | None = None) -> None:
        self.path = Path(path)
        self.revision = 0
        self._runs = runs
        self._clips = clips
        self._began: list[str | None] = [None] * len(runs)
        # Marks may be changed from any thread.
        self._lock = threading.Lock()
        self._marks = self._read()

    def state(self, source: int) -> dict[str, Any]:
        """Return the message with the marks of a source."""
        video, began = self._origin(source)
        marks = sorted((mark for mark in self._marks.values()
                        if (mark.video, mark.began) == (video, began)),
                       key=lambda mark: mark.start)
        shown = [{name: getattr(mark, name) for name in (
            'mark', 'label', 'detected', 'start', 'end', 'score')}
            for mark in marks[-MAX_SHOWN:]]
        return dict(type='marks', source=source, revision=self.revision,
                    marks=shown)

    def change(self, source: int, message: Mapping[str, Any]) -> None:
        """Add, change or remove the mark of an event, and save it.

        Args:
            source: Number of the run.
            message: Dictionary with the keys

                - ``mark``: The new mark, or ``'none'`` to clear it.
                - ``start``: Start of the event.
                - ``class``: Detected class, or '' for a missed event.
                - ``label``: Right class, if ``mark`` is ``'class'`` or the
                  event was missed.
                - ``end``: End of a missed event.

        Raises:
            ValueError: If the message is malformed.
            MarkError: If the event is unknown, or the file cannot be read or
                written. All marks stay as they were.
        """
        kind, detected = message.get('mark'), message.get('class', '')
        start, label = message.get('start'), message.get('label', '')
        if kind not in (RIGHT, WRONG, CLASS, MISSED, NONE):
            raise ValueError(f'unknown mark {kind!r}')
        if not isinstance(detected, str) or not isinstance(label, str):
            raise ValueError('class and label must be text')
        if not is_time(start):
            raise ValueError(f'start must be a number, got {start!r}')
        run = self._runs[source]
        classes = [name for i, name in enumerate(run.classes)
                   if i not in run.ignore]
        if kind in (CLASS, MISSED) and label not in classes:
            raise ValueError(f'label must be a class, got {label!r}')
        if not detected and kind not in (MISSED, NONE):
            raise ValueError('class must be the detected class')
        video, began = self._origin(source)
        mark = Mark(video, start, start, label, kind, detected, began=began)
        if kind == MISSED:
            end = message.get('end')
            if not is_time(end) or end <= start:
                raise ValueError(f'end must be after {start}, got {end!r}')
            mark = mark._replace(end=end, detected='')
        elif kind != NONE:
            mark = self._judge(source, mark)
        self._save(mark)
        self._began[source] = began

    def _judge(self, source: int, mark: Mark) -> Mark:
        """Complete the mark of a detected event."""
        event = self._find(source, mark.detected, mark.start)
        if event is not None:
            clip = self._clips[source](event) if self._clips else ''
            mark = mark._replace(
                end=event['end'], score=event.get('peak'),
                clip=clip and _relative(clip, self.path.parent))
        elif mark.key in self._marks:
            mark = self._marks[mark.key]._replace(
                mark=mark.mark, label=mark.label)
        else:
            raise MarkError('The event is in progress, or too old.')
        if mark.mark == CLASS and mark.label != mark.detected:
            return mark
        return mark._replace(mark=WRONG if mark.mark == WRONG else RIGHT,
                             label=mark.detected)

    def _find(self, source: int, name: str, start: float) -> dict | None:
        for event in reversed(list(self._runs[source].events.recent)):
            if (event['event'], event['class'], event['start']) == (
                    'end', name, start):
                return event
        return None

    def _save(self, mark: Mark) -> None:
        """Save a mark, or remove it from the file if it is ``'none'``."""
        with self._lock:
            try:
                with wait_for_folder(self.path.parent):
                    marks = self._read()
                    if mark.mark == NONE:
                        marks.pop(mark.key, None)
                    else:
                        marks[mark.key] = mark
                    if len(marks) > MAX_MARKS:
                        raise MarkError(f'{self.path.name} is full: it has '
                                        f'{MAX_MARKS} marks.')
                    write_atomically(self.path, format_marks(marks.values()))
            except OSError as error:
                raise MarkError('The mark was not saved: '
                                f'{error.strerror or error}.') from error
            except ValueError as error:
                # Someone has changed the file.
                text = str(error).replace(str(self.path), self.path.name)
                raise MarkError(f'The mark was not saved: {text}') from error
            self._marks = marks
            self.revision += 1

    def _read(self) -> dict[tuple, Mark]:
        if not self.path.exists():
            return {}
        return {mark.key: mark for mark in read_marks(self.path)}

    def _origin(self, source: int) -> tuple[str, str]:
        """Return the name of a source, and the time of its second 0."""
        run = self._runs[source]
        video, began = run.report()['name'], self._began[source]
        if began is None:
            began = '' if run.began is None else self._known(video, run.began)
        return video, began

    def _known(self, video: str, began: float) -> str:
        """Return the time of second 0 that earlier marks have, if any."""
        for mark in self._marks.values():
            if mark.video == video and mark.began and abs(
                    _parse(mark.began) - began) < SAME_SECONDS:
                return mark.began
        return datetime.fromtimestamp(
            round(began), timezone.utc).isoformat()


def _parse(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.


def is_time(value: object) -> bool:
    """Return True for a finite number of at least 0."""
    return type(value) in (int, float) and 0 <= value < float('inf')


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        # On another drive.
        return path.as_posix()
