# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detection of the starts and ends of actions in scores."""
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.arguments import (
    NotNegative,
    Share,
    check_arguments,
    check_type,
)
from . import MIN_DURATION, OFF, ON
from .event_thresholds import check_class_thresholds, check_on_off, smooth


@dataclass
class _Action:
    """An action in progress; ``id`` belongs to its start event."""
    start: float
    peak: float
    id: int | None = None


@check_arguments
class EventDetector:
    """Detector of the starts and ends of actions in the scores of steps.

    A step is an interval of a stream. An action starts when its score reaches
    ``on``, and ends when its score falls below ``off``. It is reported once it
    has lasted ``min_duration``. Events are numbered from 0. The search of
    thresholds (``evaluation/events/tune_thresholds.py``) repeats this rule.

    New thresholds (:meth:`set_threshold`) apply only to later steps. An action
    in progress keeps its start, even if its score is below the new ``on``, and
    ends at the first later step below the new ``off``. A new action starts at
    the next step at the earliest, even if earlier scores reach the new ``on``.

    Args:
        names: Class names.
        ignore: Indices of classes that are not actions, such as the
            background.
        on: Score that starts an action.
        off: Score below which an action ends, at most ``on``.
        min_duration: Seconds that an action must last.
        thresholds: For some classes, by name, arguments of
            :class:`~.event_thresholds.ClassThresholds`, which take the place
            of the arguments above, such as those that
            :func:`mmvidattn.evaluation.tune_thresholds` found. Defaults to
            None.

    Raises:
        ValueError: If a threshold is out of range, or ``thresholds`` has a
            name that is not an action.
    """

    def __init__(self, names: Sequence[str],
                 ignore: Container[int] = (0, ),
                 on: float = ON, off: float = OFF,
                 min_duration: NotNegative = MIN_DURATION,
                 thresholds: Mapping[str, Mapping[str, float]] | None = None
                 ) -> None:
        check_on_off(on, off)
        self.names = names
        self.on = on
        self.off = off
        self.min_duration = min_duration
        self._is_action = np.array(
            [i not in ignore for i in range(len(names))])
        # `on` and `off` of each class, [2, K], and further rules, [K].
        self._initial = np.repeat([[on], [off]], len(names), axis=1)
        self._min_duration = np.full(len(names), min_duration, float)
        self._smoothing = np.zeros(len(names))
        self.tuned = check_class_thresholds(thresholds or {})
        for name, rules in self.tuned.items():
            actions = self._actions(name)
            self._initial[:, actions] = [[rules['on']], [rules['off']]]
            self._min_duration[actions] = rules['min_duration']
            self._smoothing[actions] = rules['smoothing']
        # The array is replaced instead of modified, because other threads
        # change thresholds.
        self._thresholds = self._initial
        # Moving average of the scores, [K], and the end of its latest step.
        self._average: tuple[np.ndarray, float] | None = None
        self._current: dict[int, _Action] = {}
        self._next_id = 0
        # End of the latest step.
        self._last_end = -math.inf

    def set_threshold(self, name: str, on: float | None) -> None:
        """Change the thresholds of a class; may be called from any thread.

        Args:
            name: Class name.
            on: Score that starts an action. None restores the initial one.
                The ratio of ``off`` to ``on`` stays the same.

        Raises:
            ValueError: If the class is not an action, or ``on`` is out of
                range.
        """
        actions = self._actions(name)
        check_type('on', on, Share | None)
        first_on, off = self._initial[:, actions[0]].tolist()
        if on is None:
            on = first_on
        if on != first_on:
            off = on * (off / first_on)
        thresholds = self._thresholds.copy()
        thresholds[:, actions] = [[on], [off]]
        self._thresholds = thresholds

    def _actions(self, name: str) -> list[int]:
        """Return the indices of the actions with a name."""
        actions = [i for i, other in enumerate(self.names)
                   if other == name and self._is_action[i]]
        if not actions:
            known = [other for other, is_action in zip(
                self.names, self._is_action) if is_action]
            raise ValueError('the class of a threshold must be an action, got '
                             f'{name!r}; the model has {", ".join(known)}')
        return actions

    @property
    def active_since(self) -> float | None:
        """Start of the oldest action in progress, also if not reported yet."""
        return min((action.start for action in self._current.values()),
                   default=None)

    def thresholds(self) -> dict[str, Any]:
        """Return the thresholds of all classes.

        Returns:
            ``on`` and ``off``, the initial thresholds of most classes; and
            ``{class: (on, off)}``: ``tuned``, the separate initial thresholds
            of some classes, and ``changed``, the current thresholds of the
            classes that :meth:`set_threshold` changed.
        """
        changed = {
            self.names[i]: (on, off) for i, (on, off) in enumerate(
                self._thresholds.T.tolist()) if on != self._initial[0, i]}
        tuned = {name: (rules['on'], rules['off'])
                 for name, rules in self.tuned.items()}
        return dict(on=self.on, off=self.off, changed=changed, tuned=tuned)

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

        Raises:
            ValueError: If the step does not end after its start and after the
                previous step.
        """
        # False for nan.
        if not max(start, self._last_end) < end < math.inf or start != start:
            raise ValueError(
                'a step must end after its start and after the end of the '
                f'previous step ({self._last_end:g} s), got start={start:g} '
                f'and end={end:g}')
        self._last_end = end
        events = []
        if self._smoothing.any():
            scores = self._smooth(end, scores)
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
                                      self._min_duration[i] - 1e-6):
                action.id = self._next_id
                events.append(self._event('start', i, action, time=end))
        return events

    def finish(self, end: float) -> list[dict]:
        """End all actions because the source ends at ``end`` seconds.

        Returns:
            Events of :meth:`update`, with ``cut=True`` because the actions
            may last longer.
        """
        self._average = None
        self._last_end = -math.inf
        return [event for i in list(self._current)
                for event in self._end(i, end, time=end, cut=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the actions in progress and the changed thresholds."""
        return dict(
            next_id=self._next_id,
            average=self._average and [self._average[0].tolist(),
                                       self._average[1]],
            changed={name: on for name, (on, _)
                     in self.thresholds()['changed'].items()},
            current=[[i, action.start, action.peak, action.id]
                     for i, action in self._current.items()])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self._next_id = state_dict['next_id']
        self._last_end = -math.inf
        average = state_dict['average']
        self._average = average and (np.array(average[0]), average[1])
        for name, on in state_dict['changed'].items():
            self.set_threshold(name, on)
        self._current = {
            i: _Action(*action) for i, *action in state_dict['current']}

    def replay(self, event: Mapping[str, Any]) -> None:
        """Apply an event that was reported after :meth:`state_dict`."""
        self._next_id = event['id'] + 1
        self._current.pop(event['index'], None)
        if event['event'] == 'start':
            # The start event does not have the score, which was at least the
            # `on` of that time.
            self._current[event['index']] = _Action(
                event['start'], float(self._thresholds[0, event['index']]),
                event['id'])

    def _smooth(self, end: float, scores: np.ndarray) -> np.ndarray:
        """Return the moving average of the scores, [K]."""
        average = scores
        if self._average is not None:
            previous, last_end = self._average
            average = smooth(previous.astype(scores.dtype), scores,
                             self._smoothing, end - last_end)
            # A score that is not a number must not stay in the average.
            self._average = np.where(np.isnan(average), previous, average), end
        elif not np.isnan(scores).any():
            self._average = scores, end
        return average

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

    If options set ``on``, ``off`` or ``min_duration``, and do not set
    ``thresholds``, earlier ``thresholds`` are dropped, because they would hide
    these values.
    """
    merged: dict[str, Any] = dict(on=ON, off=OFF)
    for given in options:
        on, off = given.get('on', merged['on']), merged['off']
        if 'off' not in given and on < off:
            off = on * (off / merged['on'])
        if given:
            merged.pop('thresholds', None)
        merged = {**merged, 'off': off, **given}
    return merged
