# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""From scores to actions that start and end."""
import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.lines import split_lines

# Length of `EventLog.recent`.
MAX_RECENT = 200


@dataclass
class _Action:
    """One that goes on; ``id`` is that of the event that reported it."""
    start: float
    peak: float
    id: int | None = None


class EventDetector:
    """Turns the scores of steps into the starts and ends of actions.

    An action starts when its score reaches ``on``, and lasts until it falls
    below ``off``. It is reported once it has lasted ``min_duration``. Events
    are numbered from 0 on.

    A class may get thresholds of its own while it runs
    (:meth:`set_threshold`), which hold from the next step on. They change
    nothing of what has been: a running action keeps its start, also where its
    score then is below the new ``on``, and ends at the first step below the
    new ``off``; an action that starts now starts at the step that comes, also
    where earlier scores reach the new ``on``.

    Args:
        names: The classes.
        ignore: Classes that are not actions, such as the background.
        on: Score that starts an action.
        off: Score below which it ends, at most ``on``.
        min_duration: Seconds that an action must last.

    Raises:
        ValueError: If a threshold is out of range.
    """

    def __init__(self, names: Sequence[str], ignore: Sequence[int] = (0, ),
                 on: float = 0.5, off: float = 0.3,
                 min_duration: float = 0.5) -> None:
        if not 0 < off <= on <= 1:
            raise ValueError('events need 0 < off <= on <= 1, got '
                             f'on={on}, off={off}')
        if not min_duration >= 0:
            raise ValueError(
                f'min_duration must be at least 0 seconds, got {min_duration}')
        self.names = names
        self.on = on
        self.off = off
        self.min_duration = min_duration
        self._is_action = np.array(
            [i not in ignore for i in range(len(names))])
        # Rows of on and off, [2, K]; replaced as a whole, as other threads
        # change it.
        self._thresholds = np.repeat([[on], [off]], len(names), axis=1)
        self._current: dict[int, _Action] = {}
        self._next_id = 0

    def set_threshold(self, name: str, on: float | None) -> None:
        """Change the thresholds of a class from the next step on.

        From any thread.

        Args:
            name: The class.
            on: Score that starts an action; None for the one that it began
                with. ``off`` keeps its ratio to it.

        Raises:
            ValueError: If there is no such action, or it is out of range.
        """
        actions = self._actions(name)
        if not len(actions):
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
        """Start of the first action that goes on, reported or not."""
        return min((action.start for action in self._current.values()),
                   default=None)

    def thresholds(self) -> dict[str, Any]:
        """Return ``on`` and ``off`` of all classes, and ``changed``, those of
        the classes that have their own."""
        return dict(on=self.on, off=self.off,
                    changed=self.changed_thresholds())

    def changed_thresholds(self) -> dict[str, tuple[float, float]]:
        """``on`` and ``off`` of the classes that have their own."""
        thresholds = self._thresholds
        return {self.names[i]: tuple(thresholds[:, i].tolist())
                for i in np.flatnonzero(thresholds[0] != self.on)}

    def _actions(self, name: str) -> list[int]:
        return [i for i, other in enumerate(self.names)
                if other == name and self._is_action[i]]

    def update(self, start: float, end: float,
               scores: np.ndarray) -> list[dict]:
        """Take the scores [K] of a step from ``start`` to ``end`` seconds.

        Returns:
            New events, ends first, each with its number ``id``, the
            ``class``, its ``index`` and times in seconds of the source:
            ``dict(event='start', start=..., time=...)`` or
            ``dict(event='end', start=..., end=..., peak=..., start_id=...,
            time=...)``. ``time`` is when it was reported, ``start_id`` the
            number of the event that reported the start.
        """
        events = []
        # As precise as the scores, so that 0.3 is reached by 0.3.
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
        """End all actions, as the source ends at ``end`` seconds.

        Returns:
            As :meth:`update`; ``cut=True`` says that they may go on.
        """
        return [event for i in list(self._current)
                for event in self._end(i, end, time=end, cut=True)]

    def state_dict(self) -> dict[str, Any]:
        """The actions that go on, the next number, changed thresholds."""
        return dict(
            next_id=self._next_id,
            changed={name: on for name, (on, _)
                     in self.changed_thresholds().items()},
            current=[[i, action.start, action.peak, action.id]
                     for i, action in self._current.items()])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where another detector of these classes was."""
        self._next_id = state_dict['next_id']
        # Older ones have none.
        for name, on in state_dict.get('changed', {}).items():
            self.set_threshold(name, on)
        self._current = {
            i: _Action(*action) for i, *action in state_dict['current']}

    def replay(self, event: Mapping[str, Any]) -> None:
        """Take an event that was reported after :meth:`state_dict`."""
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


class EventLog:
    """Writes events as JSON Lines, each as it happens.

    Args:
        path: The file. Defaults to none.
        size: Bytes of it to go on after; what comes behind them is cut off.
            Defaults to none: it is overwritten.

    Raises:
        ValueError: If the file does not have that many, or they do not end
            with a line.

    Attributes:
        path: The file, if any.
        recent: The latest events.
        size: Bytes that were written so far.
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
        """Write events; they are on the disk when this returns."""
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
        path: The file.
        start: Where to begin, in bytes.
        end: Where to end. Defaults to the end of the last whole line.

    Returns:
        The events, and where they end.

    Raises:
        ValueError: If there is no such part, or it is not of whole lines.
    """
    wanted = f'{path} must have events up to byte {end or start}, as it had'
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f'{wanted}: {error}') from error
    if end is None:
        end = max(start, data.rfind(b'\n') + 1)
    if len(data) < end or any(
            at and data[at - 1:at] != b'\n' for at in (start, end)):
        raise ValueError(f'{wanted}, and has {len(data)} bytes: it is '
                         'another file, or has been changed')
    return [json.loads(line)
            for line in split_lines(data[start:end].decode())], end
