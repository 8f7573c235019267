# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature streams whose actions need memories of all lengths.

The streams have the events of ``tools/data/online/cued_streams.py``: the
latest cue, which may be a few or two thousand steps back, determines the class
of an action. In training, all cues are clear. In the test, the strength of
cues varies, and some are almost hidden in the noise, so that accuracy rises
smoothly with the capacity of a memory. (When weak cues were in the training
set too, some models never learned to look back for cues.)

The files have the layout of
:class:`mmvidattn.datasets.FeatureStreamDataset`. In addition, ``distance`` has
the number of steps from its cue for each step of an action.
"""
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mmvidattn.evaluation.average_precision import average_precision
from tools.data.online.cued_streams import (
    NUM_CLASSES,
    Event,
    Stream,
    class_names,
    columns,
    place_events,
    show_events,
)
from tools.harness import prepare_once

# Range of the number of steps between the end of a cue and its action.
BINS = {
    '4': (4, 12),
    '12': (12, 40),
    '40': (40, 120),
    '120': (120, 400),
    '400': (400, 1000),
    '1000': (1000, 2000),
}
WIDTHS = dict(rgb=32, flow=16)
# Streams per split: val chooses the learning rate, test is reported.
SPLITS = dict(train=64, val=8, test=24)
OPTIONS = dict(
    steps=4000,
    action_steps=(8, 16),
    # Steps from a cue to the first action.
    first_gap_steps=(4, 12),
    # Steps between actions.
    gap_steps=(8, 32),
    # Long enough for memories that sample every fourth step.
    cue_steps=12,
    sign_steps=4,
    # Steps between cues.
    turn_steps=(120, 2000),
    # Strength of cues; the noise has a standard deviation of 1.
    strength=dict(train=(1., 4.), val=(.2, 4.), test=(.2, 4.)))


def patterns(seed: int) -> dict[str, np.ndarray]:
    """Return the patterns ``(count, D)`` of cues, actions and the sign."""
    rng, width = np.random.default_rng([seed, 9]), sum(WIDTHS.values())
    sizes = dict(cue=NUM_CLASSES, action=1, sign=1)
    return {name: rng.normal(size=(count, width))
            for name, count in sizes.items()}


def make_stream(seed: int, split: str, index: int,
                noise: float = 1.) -> Stream:
    """Draw a stream, which does not depend on other streams."""
    rng = np.random.default_rng([seed, [*SPLITS].index(split), index])
    steps = int(OPTIONS['steps'] * rng.uniform(.9, 1.1))
    features = noise * rng.normal(size=(steps, sum(WIDTHS.values())))
    return show_events(features, patterns(seed),
                       place_events(rng, steps, dict(
                           OPTIONS, strength=OPTIONS['strength'][split])),
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
