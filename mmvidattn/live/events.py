# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detection of actions in scores, and the file of events."""
import json
import os
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.arguments import NotNegative, check_arguments
from ..utils.lines import split_lines

# Length of `EventLog.recent`.
MAX_RECENT = 200
# Default scores that start and end an action.
ON, OFF = 0.5, 0.3


@dataclass
class _Action:
    """An action in progress; ``id`` belongs to its start event."""
    start: float
    peak: float
    id: int | None = None


@check_arguments
class EventDetector:
    """Detector of the starts and ends of actions in the scores of steps.

    An action starts when its score reaches ``on``, and ends when its score
    falls below ``off``. It is reported once it has lasted ``min_duration``.
    Events are numbered from 0.

    :meth:`set_threshold` changes the thresholds of a class during a run. New
    thresholds apply only to later steps. An action in progress keeps its
    start, even if its score is below the new ``on``, and ends at the first
    later step below the new ``off``. A new action starts at the next step at
    the earliest, even if earlier scores reach the new ``on``.

    Args:
        names: Class names.
        ignore: Indices of classes that are not actions, such as the
            background.
        on: Score that starts an action.
        off: Score below which an action ends, at most ``on``.
        min_duration: Seconds that an action must last.

    Raises:
        ValueError: If a threshold is out of range.
    """

    def __init__(self, names: Sequence[str],
                 ignore: Container[int] = (0, ),
                 on: float = ON, off: float = OFF,
                 min_duration: NotNegative = 0.5) -> None:
        if not 0 < off <= on <= 1:
            raise ValueError('events need 0 < off <= on <= 1, got '
                             f'on={on}, off={off}')
        self.names = names
        self.on = on
        self.off = off
        self.min_duration = min_duration
        self._is_action = np.array(
            [i not in ignore for i in range(len(names))])
        # `on` and `off` of each class, [2, K]. The array is replaced instead
        # of modified, because other threads change thresholds.
        self._thresholds = np.repeat([[on], [off]], len(names), axis=1)
        self._current: dict[int, _Action] = {}
        self._next_id = 0

    def set_threshold(self, name: str, on: float | None) -> None:
        """Change the thresholds of a class from the next step on.

        May be called from any thread.

        Args:
            name: Class name.
            on: Score that starts an action. None restores the initial one.
                The ratio of ``off`` to ``on`` stays the same.

        Raises:
            ValueError: If the class is not an action, or ``on`` is out of
                range.
        """
        actions = [i for i, other in enumerate(self.names)
                   if other == name and self._is_action[i]]
        if not actions:
            raise ValueError(f'name must be an action, got {name!r}')
        if on is not None and not 0 < on <= 1:
            raise ValueError(f'on must be in (0, 1], got {on}')
        if on is None or on == self.on:
            on, off = self.on, self.off
        else:
            off = on * (self.off / self.on)
        thresholds = self._thresholds.copy()
        thresholds[:, actions] = [[on], [off]]
        self._thresholds = thresholds

    @property
    def active_since(self) -> float | None:
        """Start of the oldest action in progress, also if not reported yet."""
        return min((action.start for action in self._current.values()),
                   default=None)

    def thresholds(self) -> dict[str, Any]:
        """Return the initial ``on`` and ``off``, and the ``changed`` ones.

        ``changed`` has (on, off) of each class whose thresholds differ.
        """
        thresholds = self._thresholds
        changed = {self.names[i]: tuple(thresholds[:, i].tolist())
                   for i in np.flatnonzero(thresholds[0] != self.on)}
        return dict(on=self.on, off=self.off, changed=changed)

    def update(self, start: float, end: float,
               scores: np.ndarray) -> list[dict]:
        """Update with the scores [K] of a step, ``start`` to ``end`` seconds.

        Returns:
            New events, ends first. Each has a number ``id``, the ``class``,
            its ``index``, and times in seconds of the source:
            ``dict(event='start', start=..., time=...)`` or
            ``dict(event='end', start=..., end=..., peak=..., start_id=...,
            time=...)``. ``time`` is when the event was reported, ``start_id``
            the number of the action's start event.
        """
        events = []
        # Compare in the dtype of the scores, so that a score of 0.3 reaches a
        # threshold of 0.3.
        on, off = self._thresholds.astype(scores.dtype)
        for i in [i for i in self._current if scores[i] < off[i]]:
            events += self._end(i, start, time=end)
        for i in np.flatnonzero(self._is_action & (scores >= on)):
            self._current.setdefault(int(i), _Action(start, 0.))
        for i, action in self._current.items():
            action.peak = max(action.peak, float(scores[i]))
            # Times are multiples of a step's length, up to rounding.
            if action.id is None and (end - action.start >=
                                      self.min_duration - 1e-6):
                action.id = self._next_id
                events.append(self._event('start', i, action, time=end))
        return events

    def finish(self, end: float) -> list[dict]:
        """End all actions because the source ends at ``end`` seconds.

        Returns:
            Events of :meth:`update`, with ``cut=True`` because the actions
            may last longer.
        """
        return [event for i in list(self._current)
                for event in self._end(i, end, time=end, cut=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the actions in progress and the changed thresholds."""
        return dict(
            next_id=self._next_id,
            changed={name: on for name, (on, _)
                     in self.thresholds()['changed'].items()},
            current=[[i, action.start, action.peak, action.id]
                     for i, action in self._current.items()])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self._next_id = state_dict['next_id']
        # States of earlier versions lack this entry.
        for name, on in state_dict.get('changed', {}).items():
            self.set_threshold(name, on)
        self._current = {
            i: _Action(*action) for i, *action in state_dict['current']}

    def replay(self, event: Mapping[str, Any]) -> None:
        """Apply an event that was reported after :meth:`state_dict`."""
        self._next_id = event['id'] + 1
        self._current.pop(event['index'], None)
        if event['event'] == 'start':
            self._current[event['index']] = _Action(
                event['start'], 0., event['id'])

    def _end(self, i: int, end: float, **more: float) -> list[dict]:
        action = self._current.pop(i)
        if action.id is None:
            return []
        return [self._event('end', i, action, end=end,
                            peak=round(action.peak, 4), start_id=action.id,
                            **more)]

    def _event(self, kind: str, i: int, action: _Action,
               **more: float) -> dict:
        number = self._next_id
        self._next_id += 1
        return {'id': number, 'event': kind, 'class': self.names[i],
                'index': i, 'start': action.start, **more}


def merge_event_options(*options: Mapping[str, Any]) -> dict[str, Any]:
    """Merge arguments of :class:`EventDetector`; later ones take precedence.

    If options set ``on`` below the previous ``off``, and do not set ``off``,
    then ``off`` is lowered too. The ratio of ``off`` to ``on`` stays the same,
    like in :meth:`EventDetector.set_threshold`.
    """
    merged: dict[str, Any] = dict(on=ON, off=OFF)
    for given in options:
        on, off = given.get('on', merged['on']), merged['off']
        if 'off' not in given and on < off:
            off = on * (off / merged['on'])
        merged = {**merged, 'off': off, **given}
    return merged


class EventLog:
    """Writer of events to a file, immediately, in JSON Lines format.

    Args:
        path: Path of the file. Defaults to no file.
        size: Number of bytes of an existing file to keep and append to; the
            rest is cut off. Defaults to 0, which overwrites the file.

    Raises:
        ValueError: If the file is shorter, or its first ``size`` bytes do not
            end with a line.

    Attributes:
        path: Path of the file, if any.
        recent: Latest events.
        size: Size of the file in bytes.
    """

    def __init__(self, path: str | Path | None = None,
                 size: int | None = None) -> None:
        self.recent: deque[dict] = deque(maxlen=MAX_RECENT)
        self.path = path
        self.size = 0
        self._file = None
        if path is None:
            return
        if size:
            self.recent.extend(read_events(path, 0, size)[0])
            self.size = size
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, 'r+b' if size else 'wb')
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def write(self, events: Sequence[dict]) -> None:
        """Write events, and wait until they are on the disk."""
        self.recent.extend(events)
        if not events or self._file is None:
            return
        lines = ''.join(json.dumps(event, ensure_ascii=False) + '\n'
                        for event in events).encode()
        self._file.write(lines)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.size += len(lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_events(path: str | Path, start: int,
                end: int | None = None) -> tuple[list[dict], int]:
    """Read events of an :class:`EventLog`.

    Args:
        path: Path of the file.
        start: First byte to read.
        end: Byte to stop before. Defaults to the end of the last complete
            line.

    Returns:
        Events, and the byte after the last one.

    Raises:
        ValueError: If the file is shorter, or a boundary is inside a line.
    """
    wanted = f'{path} must have events up to byte {end or start}'
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f'{wanted}: {error}') from error
    if end is None:
        end = max(start, data.rfind(b'\n') + 1)
    if len(data) < end or any(
            at and data[at - 1:at] != b'\n' for at in (start, end)):
        raise ValueError(f'{wanted}, got {len(data)} bytes: it is another '
                         'file, or has been changed')
    return [json.loads(line)
            for line in split_lines(data[start:end].decode())], end
