# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature streams whose actions take memories of all lengths.

A stream is noise in which cues are shown and actions take place. The features
of an action say that it is one, and no more; which of the classes it is was
said by the latest cue. That was a few steps ago, or two thousand. Older cues
are in the memory as well, and say what they will. A cue is an action too,
whose own features tell it. All cues are clear in training; of those that are
tested some are all but hidden in the noise, so that accuracy rises smoothly
with what a memory can hold. (Trained on hidden ones as well, some models
learned to look back for cues and some never did.)

A sign comes before an action: there is something to anticipate.

The layout is that of :class:`mmvidattn.datasets.FeatureStreamDataset`; beside
it ``distance`` has, of each step of an action, how far back its cue is.
"""
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmvidattn.evaluation.average_precision import average_precision
from mmvidattn.utils.files import write_atomically

# Steps between the end of a cue and an action.
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
# Streams. Of val the learning rate is chosen, test is reported.
SPLITS = dict(train=64, val=8, test=24)
OPTIONS = dict(
    steps=4000,
    action_steps=(8, 16),
    # From a cue to the first action, and from one to the next.
    first_gap_steps=(4, 12),
    gap_steps=(8, 32),
    # Seen where every fourth step is.
    cue_steps=12,
    sign_steps=4,
    # From a cue to the next one.
    turn_steps=(120, 2000),
    # Of cues; the noise has a standard deviation of 1.
    strength=dict(train=(1., 4.), val=(.2, 4.), test=(.2, 4.)))


class Event(NamedTuple):
    """A cue or an action; times are in steps, and ``end`` is after it.

    Attributes:
        kind: 'cue' or 'action'.
        label: Its class.
        start: First step.
        end: Step after the last one.
        cue: Start of the cue that decides it; of a cue its own.
        strength: Of a cue, how clear it is.
    """
    kind: str
    label: int
    start: int
    end: int
    cue: int
    strength: float = 1.


class Stream(NamedTuple):
    """A stream.

    Attributes:
        features: ``(T, D)`` float32.
        targets: ``(T, K)`` uint8.
        distances: ``(T,)``: of a step of an action, how many steps its first
            one is behind the end of its cue; -1 elsewhere.
        events: In the order of time.
    """
    features: np.ndarray
    targets: np.ndarray
    distances: np.ndarray
    events: list[Event]


def class_names() -> list[str]:
    """Of all classes, the background first."""
    return ['background'] + [f'{kind}_{label}' for kind in ('cue', 'action')
                             for label in range(NUM_CLASSES)]


def columns(kind: str) -> slice:
    """Where the targets have the classes of a kind."""
    first = 1 + (kind == 'action') * NUM_CLASSES
    return slice(first, first + NUM_CLASSES)


def patterns(seed: int) -> dict[str, np.ndarray]:
    """Appearances, ``(count, D)``: a cue's for each class."""
    rng, width = np.random.default_rng([seed, 9]), sum(WIDTHS.values())
    sizes = dict(cue=NUM_CLASSES, action=1, sign=1)
    return {name: rng.normal(size=(count, width))
            for name, count in sizes.items()}


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Uniform in its logarithm."""
    return low * (high / low)**rng.uniform()


def _place_actions(rng: np.random.Generator, cue: Event,
                   until: int) -> list[Event]:
    """Actions that a cue decides, one after the other."""
    events, time = [], cue.end
    while True:
        gap = OPTIONS['gap_steps'] if events else OPTIONS['first_gap_steps']
        start = time + int(rng.integers(*gap))
        time = start + int(rng.integers(*OPTIONS['action_steps']))
        if time > until:
            return events
        events.append(cue._replace(
            kind='action', start=start, end=time, strength=1.))


def make_stream(seed: int, split: str, index: int,
                noise: float = 1.) -> Stream:
    """One stream; the others don't matter."""
    rng = np.random.default_rng([seed, [*SPLITS].index(split), index])
    steps = int(OPTIONS['steps'] * rng.uniform(.9, 1.1))
    looks, sign = patterns(seed), OPTIONS['sign_steps']
    features = noise * rng.normal(size=(steps, sum(WIDTHS.values())))
    targets = np.zeros((steps, len(class_names())), np.uint8)
    distances = np.full(steps, -1, np.int32)
    events: list[Event] = []
    time = int(rng.uniform(0, 100))
    while time + OPTIONS['cue_steps'] <= steps:
        end = time + OPTIONS['cue_steps']
        cue = Event('cue', int(rng.integers(NUM_CLASSES)), time, end, time,
                    _between(rng, *OPTIONS['strength'][split]))
        time = end + int(_between(rng, *OPTIONS['turn_steps']))
        events += [cue, *_place_actions(rng, cue, min(time, steps))]
    for event in events:
        here = slice(event.start, event.end)
        targets[here, columns(event.kind)][:, event.label] = 1
        if event.kind == 'cue':
            features[here] += event.strength * looks['cue'][event.label]
        else:
            features[here] += looks['action'][0]
            features[event.start - sign:event.start] += looks['sign'][0]
            distances[here] = event.start - event.cue - OPTIONS['cue_steps']
    targets[:, 0] = ~targets.any(axis=1)
    events.sort(key=lambda event: event.start)
    return Stream(features.astype(np.float32), targets, distances, events)


def figures(scores: np.ndarray, targets: np.ndarray,
            distances: np.ndarray) -> dict[str, float]:
    """Mean average precision of actions, by how far their cues are.

    Args:
        scores: ``(T, K)``.
        targets: ``(T, K)``.
        distances: ``(T,)``, as a stream has them.

    Returns:
        In percent: ``bin_<least distance>``, the mean average precision of
        the classes of actions among the steps with such a distance; ``score``,
        the mean of all distances; ``now``, that of cues among all steps, which
        takes no memory.
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
        for name, (low, high) in BINS.items()}
    return dict(found, score=float(np.mean([*found.values()])),
                now=mean_precision('cue', slice(None)))


def _posterior(features: np.ndarray, cue: Event,
               looks: np.ndarray) -> np.ndarray:
    """How likely each class of a cue is by all its steps, ``(K,)``."""
    seen = features[cue.start:cue.end]
    errors = np.square(seen[:, None] - cue.strength * looks).sum(axis=(0, 2))
    weights = np.exp((errors.min() - errors) / 2)
    return weights / weights.sum()


def oracle(seed: int, streams: Sequence[Stream],
           with_cues: bool = True) -> dict[str, float]:
    """Figures of one who knows when events are, and all patterns.

    Args:
        seed: Of the patterns.
        streams: To be scored.
        with_cues: It knows the cue that decides an action, and how strong it
            is; else the class remains to be guessed.
    """
    looks, scores = patterns(seed)['cue'], []
    for stream in streams:
        scores.append(np.zeros(stream.targets.shape))
        cues = {event.start: event for event in stream.events
                if event.kind == 'cue'}
        for event in stream.events:
            scores[-1][event.start:event.end, columns(event.kind)] = (
                _posterior(stream.features, cues[event.cue], looks)
                if with_cues else 1 / NUM_CLASSES)
    return figures(scores=np.concatenate(scores), **{
        name: np.concatenate([getattr(stream, name) for stream in streams])
        for name in ('targets', 'distances')})


def prepare(folder: Path, sizes: dict[str, int], seed: int = 0) -> dict:
    """Write the streams of all splits, unless they are there.

    Args:
        folder: Where to.
        sizes: Streams of each split.
        seed: Of the patterns and the streams.

    Returns:
        ``chance`` and ``oracle``: figures on the test streams of one who
        knows all but the classes, and of one who reads them off the cues.

    Raises:
        ValueError: If the folder holds others.
    """
    wanted = dict(task='streams', seed=seed, sizes=sizes, bins=BINS,
                  classes=NUM_CLASSES, widths=WIDTHS, options=OPTIONS)
    wanted = json.loads(json.dumps(wanted))
    facts = folder / 'facts.json'
    if facts.is_file():
        found = json.loads(facts.read_text())
        limits = {name: found.pop(name) for name in ('chance', 'oracle')}
        if found != wanted:
            raise ValueError(f'{folder} holds other streams ({found}): choose '
                             'another folder')
        return limits
    for name in (*WIDTHS, 'target_perframe', 'distance'):
        (folder / name).mkdir(parents=True, exist_ok=True)
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
            limits = dict(
                chance=oracle(seed, streams, with_cues=False),
                oracle=oracle(seed, streams))
    write_atomically(facts, json.dumps({**wanted, **limits}))
    return limits
