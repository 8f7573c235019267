# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature streams whose actions need memories of all lengths.

A stream is noise with cues and actions. The features of all actions are the
same; the latest cue, which may be a few or two thousand steps back, determines
the class of an action. The memory also has older cues, which are irrelevant.
A cue is an action too, and its own features show its class. In training, all
cues are clear. In the test, the strength of cues varies, and some are almost
hidden in the noise, so that accuracy rises smoothly with the capacity of a
memory. (When weak cues were in the training set too, some models never learned
to look back for cues.)

A sign appears before each action, so that actions can be anticipated.

The files have the layout of
:class:`mmvidattn.datasets.FeatureStreamDataset`. In addition, ``distance`` has
the number of steps from its cue for each step of an action.
"""
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmvidattn.evaluation.average_precision import average_precision
from tools.harness import prepare_once

# Bounds of the steps between the end of a cue and an action.
BINS = {
    '4': (4, 12),
    '12': (12, 40),
    '40': (40, 120),
    '120': (120, 400),
    '400': (400, 1000),
    '1000': (1000, 2000),
}
NUM_CLASSES = 4
WIDTHS = dict(rgb=32, flow=16)
# Streams per split: val chooses the learning rate, test is reported.
SPLITS = dict(train=64, val=8, test=24)
OPTIONS = dict(
    steps=4000,
    action_steps=(8, 16),
    # From a cue to the first action, and between actions.
    first_gap_steps=(4, 12),
    gap_steps=(8, 32),
    # Long enough for memories that sample every fourth step.
    cue_steps=12,
    sign_steps=4,
    # Between cues.
    turn_steps=(120, 2000),
    # Strength of cues; the noise has a standard deviation of 1.
    strength=dict(train=(1., 4.), val=(.2, 4.), test=(.2, 4.)))


class Event(NamedTuple):
    """Cue or action.

    Attributes:
        kind: 'cue' or 'action'.
        label: Class.
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


def patterns(seed: int) -> dict[str, np.ndarray]:
    """Return the patterns ``(count, D)`` of cues, actions and the sign."""
    rng, width = np.random.default_rng([seed, 9]), sum(WIDTHS.values())
    sizes = dict(cue=NUM_CLASSES, action=1, sign=1)
    return {name: rng.normal(size=(count, width))
            for name, count in sizes.items()}


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


def place_events(rng: np.random.Generator, steps: int, split: str,
                 options: Mapping[str, Any]) -> list[Event]:
    """Draw the events of a stream, in order of time."""
    events: list[Event] = []
    time = int(rng.uniform(0, 100))
    while time + options['cue_steps'] <= steps:
        end = time + options['cue_steps']
        cue = Event('cue', int(rng.integers(NUM_CLASSES)), time, end, time,
                    _between(rng, *options['strength'][split]))
        time = end + int(_between(rng, *options['turn_steps']))
        events += [cue, *_place_actions(rng, cue, min(time, steps), options)]
    return sorted(events, key=lambda event: event.start)


def show_events(features: np.ndarray, looks: Mapping[str, np.ndarray],
                events: list[Event], cue_steps: int,
                sign_steps: int) -> Stream:
    """Add the patterns of events to noise, in place.

    Args:
        features: Noise, ``(T, D)``.
        looks: Patterns, see :func:`patterns`.
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


def make_stream(seed: int, split: str, index: int,
                noise: float = 1.) -> Stream:
    """Draw a stream, which does not depend on other streams."""
    rng = np.random.default_rng([seed, [*SPLITS].index(split), index])
    steps = int(OPTIONS['steps'] * rng.uniform(.9, 1.1))
    features = noise * rng.normal(size=(steps, sum(WIDTHS.values())))
    return show_events(features, patterns(seed),
                       place_events(rng, steps, split, OPTIONS),
                       OPTIONS['cue_steps'], OPTIONS['sign_steps'])


def figures(scores: np.ndarray, targets: np.ndarray, distances: np.ndarray,
            bins: Mapping[str, tuple[int, int]] = BINS) -> dict[str, float]:
    """Return the mean average precision of actions by distance of their cue.

    Args:
        scores: ``(T, K)``.
        targets: ``(T, K)``.
        distances: ``(T,)``, see ``Stream``.
        bins: Bounds of the distances by name. Defaults to ``BINS``.

    Returns:
        In percent: ``bin_<least distance>``, the mean average precision of
        the action classes among steps with this distance; ``score``, the mean
        over all distances; and ``now``, the mean average precision of the cue
        classes among all steps, which needs no memory.
    """

    def mean_precision(kind, steps):
        wanted = targets[steps, columns(kind)].T == 1
        given = scores[steps, columns(kind)].T
        found = [average_precision(a, b) for a, b in zip(wanted, given)
                 if a.any()]
        return 100 * float(np.mean(found)) if found else float('nan')

    found = {
        f'bin_{name}': mean_precision(
            'action', (low <= distances) & (distances < high))
        for name, (low, high) in bins.items()}
    return dict(found, score=float(np.mean([*found.values()])),
                now=mean_precision('cue', slice(None)))


def _posterior(features: np.ndarray, cue: Event,
               looks: np.ndarray) -> np.ndarray:
    """Return the probabilities of a cue's classes from its steps, ``(K,)``."""
    seen = features[cue.start:cue.end]
    errors = np.square(seen[:, None] - cue.strength * looks).sum(axis=(0, 2))
    weights = np.exp((errors.min() - errors) / 2)
    return weights / weights.sum()


def oracle(looks: np.ndarray, streams: Sequence[Stream],
           with_cues: bool = True,
           bins: Mapping[str, tuple[int, int]] = BINS) -> dict[str, float]:
    """Return the figures of a model that knows all patterns and event times.

    Args:
        looks: Patterns of the cues, ``(K, D)``.
        streams: Streams to score.
        with_cues: The model reads the cue that decides an action, and knows
            its strength. Otherwise it guesses the class. Defaults to True.
        bins: Bounds of the distances by name. Defaults to ``BINS``.
    """
    scores = []
    for stream in streams:
        scores.append(np.zeros(stream.targets.shape))
        cues = {event.start: event for event in stream.events
                if event.kind == 'cue'}
        for event in stream.events:
            scores[-1][event.start:event.end, columns(event.kind)] = (
                _posterior(stream.features, cues[event.cue], looks)
                if with_cues else 1 / NUM_CLASSES)
    return figures(scores=np.concatenate(scores), bins=bins, **{
        name: np.concatenate([getattr(stream, name) for stream in streams])
        for name in ('targets', 'distances')})


def prepare(folder: Path, sizes: dict[str, int], seed: int = 0) -> dict:
    """Write the streams of all splits, unless they exist.

    Args:
        folder: Folder for the streams.
        sizes: Number of streams per split.
        seed: Seed of the patterns and the streams. Defaults to 0.

    Returns:
        Figures on the test streams: ``chance`` knows everything except the
        classes, ``oracle`` also reads the cues.

    Raises:
        ValueError: If the folder has streams with other settings.
    """

    def write() -> dict[str, dict[str, float]]:
        for name in (*WIDTHS, 'target_perframe', 'distance'):
            (folder / name).mkdir(exist_ok=True)
        (folder / 'classes.txt').write_text('\n'.join(class_names()) + '\n')
        for split, count in sizes.items():
            names = [f'{split}_{index:03d}' for index in range(count)]
            streams = [make_stream(seed, split, i) for i in range(count)]
            for name, stream in zip(names, streams):
                rgb, flow = np.split(stream.features, [WIDTHS['rgb']], axis=1)
                for part, array in (('rgb', rgb), ('flow', flow),
                                    ('target_perframe', stream.targets),
                                    ('distance', stream.distances)):
                    np.save(folder / part / f'{name}.npy', array)
            (folder / f'{split}.txt').write_text('\n'.join(names) + '\n')
            if split == 'test':
                looks = patterns(seed)['cue']
                limits = dict(chance=oracle(looks, streams, with_cues=False),
                              oracle=oracle(looks, streams))
        return limits

    return prepare_once(folder, dict(
        task='streams', seed=seed, sizes=sizes, bins=BINS,
        classes=NUM_CLASSES, widths=WIDTHS, options=OPTIONS), write)
