# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature streams whose actions take memories of all lengths.

A stream is noise in which actions take place, of six tags and three classes.
The features of an action say its tag alone; which of the classes it is was
said by the latest cue of that tag, and older cues of the tag say what they
will. How far back that is depends on the tag: a few steps, or two thousand. A
cue is an action as well, whose own features tell it, and some cues are clear
and some all but hidden in the noise, so that accuracy rises smoothly with what
a memory can hold.

A sign before an action tells its tag: there is something to anticipate.

The layout is that of :class:`mmvidattn.datasets.FeatureStreamDataset`.
"""
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmvidattn.evaluation.average_precision import average_precision
from mmvidattn.utils.files import write_atomically

# By tag, how many steps lie between the end of the cue and the action.
BINS = {
    '4': (4, 12),
    '12': (12, 40),
    '40': (40, 120),
    '120': (120, 400),
    '400': (400, 1000),
    '1000': (1000, 2000),
}
NUM_CLASSES = 3
WIDTHS = dict(rgb=32, flow=16)
# Streams. Of val the learning rate is chosen, test is reported.
SPLITS = dict(train=48, val=8, test=16)
OPTIONS = dict(
    steps=4000,
    # Of each tag in a stream, as far as there is room.
    actions=12,
    action_steps=(8, 16),
    # Seen where every fourth step is.
    cue_steps=12,
    sign_steps=4,
    # The noise has a standard deviation of 1.
    strength=(.2, 4.))


class Event(NamedTuple):
    """A cue or an action; times are in steps, and ``end`` is after it.

    Attributes:
        kind: 'cue' or 'action'.
        tag: From 0, the nearest first.
        label: Of the tag's classes.
        start: First step.
        end: Step after the last one.
        cue: Start of the cue that decides it; of a cue its own.
        strength: Of a cue, how clear it is.
    """
    kind: str
    tag: int
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
        events: In the order of time.
    """
    features: np.ndarray
    targets: np.ndarray
    events: list[Event]


def class_names() -> list[str]:
    """Of all classes, the background first."""
    return ['background'] + [
        f'{kind}_{tag}_{label}' for kind in ('cue', 'action') for tag in BINS
        for label in range(NUM_CLASSES)
    ]


def column(kind: str, tag: int, label: int) -> int:
    """Where the targets have a class."""
    return 1 + ((kind == 'action') * len(BINS) + tag) * NUM_CLASSES + label


def patterns(seed: int) -> dict[str, np.ndarray]:
    """Appearances: of cues the tag's and the class's add up."""
    rng, width = np.random.default_rng([seed, 9]), sum(WIDTHS.values())
    sizes = dict(cue=len(BINS), label=NUM_CLASSES, action=len(BINS),
                 sign=len(BINS))
    return {name: rng.normal(size=(count, width))
            for name, count in sizes.items()}


def _place_tag(rng: np.random.Generator, taken: np.ndarray,
               tag: int) -> list[Event]:
    """Events of a tag where nothing is yet; marks what it takes."""
    steps, sign = len(taken), OPTIONS['sign_steps']
    low, high = [*BINS.values()][tag]
    # A cue decides several actions if the next one is far.
    turn = max(steps / OPTIONS['actions'], 1.1 * high)
    count = round(turn * OPTIONS['actions'] / steps)
    events, time = [], rng.uniform(0, max(turn - high, turn / 4))
    while True:
        start = int(time)
        end = start + OPTIONS['cue_steps']
        if end > steps:
            return events
        if taken[start:end].any():
            time += 1
            continue
        label, latest = int(rng.integers(NUM_CLASSES)), end
        weak, strong = OPTIONS['strength']
        strength = weak * (strong / weak)**rng.uniform()
        taken[start:end] = True
        events.append(Event('cue', tag, label, start, end, start, strength))
        for _ in range(count):
            # Tries, where others have taken the place.
            for _ in range(20):
                first = end + int(low * (high / low)**rng.uniform())
                last = first + int(rng.integers(*OPTIONS['action_steps']))
                if last <= steps and not taken[first - sign:last].any():
                    taken[first - sign:last] = True
                    events.append(
                        Event('action', tag, label, first, last, start))
                    latest = max(latest, last)
                    break
        time = max(latest + sign, time + turn * rng.uniform(.8, 1.2))


def make_stream(seed: int, split: str, index: int,
                noise: float = 1.) -> Stream:
    """One stream; the others don't matter."""
    rng = np.random.default_rng([seed, [*SPLITS].index(split), index])
    steps = int(OPTIONS['steps'] * rng.uniform(.9, 1.1))
    looks, sign = patterns(seed), OPTIONS['sign_steps']
    features = noise * rng.normal(size=(steps, sum(WIDTHS.values())))
    targets = np.zeros((steps, len(class_names())), np.uint8)
    taken = np.zeros(steps, bool)
    # The nearer the cue, the fewer places there are.
    events = [event for tag in range(len(BINS))
              for event in _place_tag(rng, taken, tag)]
    for event in events:
        here = slice(event.start, event.end)
        targets[here, column(*event[:3])] = 1
        if event.kind == 'cue':
            look = looks['cue'][event.tag] + looks['label'][event.label]
            features[here] += event.strength * look
        else:
            features[here] += looks['action'][event.tag]
            features[event.start - sign:event.start] += looks['sign'][
                event.tag]
    targets[:, 0] = ~targets.any(axis=1)
    events.sort(key=lambda event: event.start)
    return Stream(features.astype(np.float32), targets, events)


def figures(scores: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """Mean average precision of actions, of each tag's, and of cues.

    Args:
        scores: ``(T, K)``.
        targets: ``(T, K)``.

    Returns:
        In percent: ``bin_<tag>`` of the tag's classes, ``score`` of all
        actions and ``now`` of cues, which take no memory.
    """

    def mean(columns):
        found = [average_precision(targets[:, c] == 1, scores[:, c])
                 for c in columns if targets[:, c].any()]
        return 100 * float(np.mean(found)) if found else float('nan')

    first, last = column('action', 0, 0), len(class_names())
    found = dict(score=mean(range(first, last)), now=mean(range(1, first)))
    for tag, name in enumerate(BINS):
        start = column('action', tag, 0)
        found[f'bin_{name}'] = mean(range(start, start + NUM_CLASSES))
    return found


def _posterior(features: np.ndarray, event: Event, looks: dict) -> np.ndarray:
    """How likely each class of a cue is by all its steps, ``(K,)``."""
    wanted = event.strength * (looks['cue'][event.tag] + looks['label'])
    seen = features[event.start:event.end]
    errors = np.square(seen[:, None] - wanted).sum(axis=(0, 2))
    weights = np.exp((errors.min() - errors) / 2)
    return weights / weights.sum()


def oracle(seed: int, streams: Sequence[Stream],
           with_cues: bool = True) -> dict[str, float]:
    """Figures of one who knows when events are, their tags and all patterns.

    Args:
        seed: Of the patterns.
        streams: To be scored.
        with_cues: It knows the cue that decides an action, and how strong it
            is; else the class remains to be guessed.
    """
    looks, scores = patterns(seed), []
    for stream in streams:
        scores.append(np.zeros(stream.targets.shape))
        cues = {event.start: event for event in stream.events
                if event.kind == 'cue'}
        for event in stream.events:
            first = column(event.kind, event.tag, 0)
            scores[-1][event.start:event.end, first:first + NUM_CLASSES] = (
                _posterior(stream.features, cues[event.cue], looks)
                if with_cues else 1 / NUM_CLASSES)
    return figures(np.concatenate(scores),
                   np.concatenate([stream.targets for stream in streams]))


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
    for name in (*WIDTHS, 'target_perframe'):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / 'classes.txt').write_text('\n'.join(class_names()) + '\n')
    for split, count in sizes.items():
        names = [f'{split}_{index:03d}' for index in range(count)]
        streams = [make_stream(seed, split, i) for i in range(count)]
        for name, stream in zip(names, streams):
            rgb, flow = np.split(stream.features, [WIDTHS['rgb']], axis=1)
            for part, array in (('rgb', rgb), ('flow', flow),
                                ('target_perframe', stream.targets)):
                np.save(folder / part / f'{name}.npy', array)
        (folder / f'{split}.txt').write_text('\n'.join(names) + '\n')
        if split == 'test':
            limits = dict(
                chance=oracle(seed, streams, with_cues=False),
                oracle=oracle(seed, streams))
    write_atomically(facts, json.dumps({**wanted, **limits}))
    return limits
