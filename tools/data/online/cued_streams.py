# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams of noise with cues, which determine the class of later actions.

All actions look the same. The latest cue determines the class of an action;
older cues are irrelevant. A cue is an action too, and its own look shows its
class. A sign appears before each action, so that actions can be anticipated.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

NUM_CLASSES = 4


class Event(NamedTuple):
    """Event of a stream: a cue, or an action with the class of a cue.

    Attributes:
        kind: 'cue' or 'action'.
        label: Number of the class.
        start: First step.
        end: Step after the last step.
        cue: Start of the cue that decides the class; for a cue, its start.
        strength: Strength of a cue.
    """
    kind: str
    label: int
    start: int
    end: int
    cue: int
    strength: float = 1.


class Stream(NamedTuple):
    """Features and labels of a stream.

    Attributes:
        features: ``(T, D)`` float32.
        targets: ``(T, K)`` uint8.
        distances: ``(T,)``: for the steps of an action, the number of steps
            from the end of its cue to its first step; -1 elsewhere.
        events: Events in order of time.
    """
    features: np.ndarray
    targets: np.ndarray
    distances: np.ndarray
    events: list[Event]


def class_names() -> list[str]:
    """Return the class names, with the background first."""
    return ['background'] + [f'{kind}_{label}' for kind in ('cue', 'action')
                             for label in range(NUM_CLASSES)]


def columns(kind: str) -> slice:
    """Return the target columns of the classes of a kind."""
    first = 1 + (kind == 'action') * NUM_CLASSES
    return slice(first, first + NUM_CLASSES)


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniformly distributed."""
    return low * (high / low)**rng.uniform()


def _place_actions(rng: np.random.Generator, cue: Event, until: int,
                   options: Mapping[str, Any]) -> list[Event]:
    """Draw the actions after a cue."""
    events, time = [], cue.end
    while True:
        gap = options['gap_steps'] if events else options['first_gap_steps']
        start = time + int(rng.integers(*gap))
        time = start + int(rng.integers(*options['action_steps']))
        if time > until:
            return events
        events.append(cue._replace(
            kind='action', start=start, end=time, strength=1.))


def place_events(rng: np.random.Generator, steps: int,
                 options: Mapping[str, Any]) -> list[Event]:
    """Draw the events of a stream, in order of time.

    Args:
        rng: Random generator.
        steps: Length of the stream.
        options: ``cue_steps``, the steps of a cue; and the least and most
            ``strength`` of a cue, steps of an action (``action_steps``), from
            a cue to the first action (``first_gap_steps``), between actions
            (``gap_steps``), and from a cue to the next one (``turn_steps``).
    """
    events: list[Event] = []
    time = int(rng.uniform(0, 100))
    while time + options['cue_steps'] <= steps:
        end = time + options['cue_steps']
        cue = Event('cue', int(rng.integers(NUM_CLASSES)), time, end, time,
                    _between(rng, *options['strength']))
        time = end + int(_between(rng, *options['turn_steps']))
        events += [cue, *_place_actions(rng, cue, min(time, steps), options)]
    return sorted(events, key=lambda event: event.start)


def show_events(features: np.ndarray, looks: Mapping[str, np.ndarray],
                events: list[Event], cue_steps: int,
                sign_steps: int) -> Stream:
    """Add the patterns of events to noise, in place; return the stream.

    Args:
        features: Noise, ``(T, D)``.
        looks: Patterns ``(count, D)`` of ``cue``, one for each class, and of
            ``action`` and ``sign``.
        events: Events of the stream.
        cue_steps: Steps of a cue.
        sign_steps: Steps of the sign before an action.
    """
    targets = np.zeros((len(features), len(class_names())), np.uint8)
    distances = np.full(len(features), -1, np.int32)
    for event in events:
        here = slice(event.start, event.end)
        targets[here, columns(event.kind)][:, event.label] = 1
        if event.kind == 'cue':
            features[here] += event.strength * looks['cue'][event.label]
        else:
            features[here] += looks['action'][0]
            features[event.start - sign_steps:event.start] += looks['sign'][0]
            distances[here] = event.start - event.cue - cue_steps
    targets[:, 0] = ~targets.any(axis=1)
    return Stream(features.astype(np.float32), targets, distances, events)
