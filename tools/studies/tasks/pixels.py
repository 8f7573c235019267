# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams of small noisy frames whose actions need a memory.

The streams have the events of ``streams.py``, with other lengths: the latest
cue, 4 to 500 frames back, determines the class of an action. A pattern is a
coarse colored texture that covers the frame.

The frames of the test are drawn at twice the frame rate; the other frames of
the same scene are for the test at this rate.
"""
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tools.harness import prepare_once

from . import streams

SIDE, CELLS, FRAMES = 16, 4, 1536
# Range of the number of frames between the end of a cue and its action.
BINS = {
    '4': (4, 12),
    '12': (12, 40),
    '40': (40, 120),
    '120': (120, 250),
    '250': (250, 500),
}
# Streams per split: val chooses the learning rate, test is reported.
SPLITS = dict(train=96, val=8, test=24)
OPTIONS = dict(
    action_steps=(8, 16),
    first_gap_steps=(4, 12),
    gap_steps=(8, 32),
    cue_steps=8,
    sign_steps=4,
    turn_steps=(60, 500),
    strength=dict(train=(1., 4.), val=(.1, 4.), test=(.1, 4.)))
# Standard deviation of the noise in gray levels around the mean, and contrast
# of a pattern of strength 1 relative to it.
MEAN, NOISE, CONTRAST = 128., 24., .25


class Pixels(NamedTuple):
    """Streams of a split.

    Attributes:
        frames: ``(S, T, 3, H, W)`` uint8.
        targets: ``(S, T, K)`` uint8.
        distances: ``(S, T)``, see :class:`streams.Stream`.
    """
    frames: np.ndarray
    targets: np.ndarray
    distances: np.ndarray


def patterns(seed: int) -> dict[str, np.ndarray]:
    """Return the patterns ``(count, 3 H W)`` of cues, actions and the sign."""
    rng, size = np.random.default_rng([seed, 9]), SIDE // CELLS
    counts = dict(cue=streams.NUM_CLASSES, action=1, sign=1)
    return {
        name: CONTRAST * rng.normal(size=(count, 3, CELLS, CELLS)).repeat(
            size, axis=2).repeat(size, axis=3).reshape(count, -1)
        for name, count in counts.items()
    }


def make_stream(seed: int, split: str, index: int,
                rate: int = 1) -> streams.Stream:
    """Draw a stream, whose features are frames in units of the noise.

    Args:
        seed: Seed of the patterns and the stream.
        split: Split of the stream.
        index: Number of the stream.
        rate: Frames per step of the events. Defaults to 1.
    """
    rng = np.random.default_rng([seed, [*SPLITS].index(split), index])
    events = [
        event._replace(start=rate * event.start, end=rate * event.end,
                       cue=rate * event.cue)
        for event in streams.place_events(rng, FRAMES, split, OPTIONS)
    ]
    noise = rng.standard_normal((rate * FRAMES, 3 * SIDE**2), np.float32)
    return streams.show_events(
        noise, patterns(seed), events, rate * OPTIONS['cue_steps'],
        rate * OPTIONS['sign_steps'])


def at_half_rate(stream: streams.Stream) -> streams.Stream:
    """Return every second frame of a stream with ``rate=2``."""
    return streams.Stream(
        stream.features[::2], stream.targets[::2], stream.distances[::2] // 2,
        [event._replace(start=event.start // 2, end=event.end // 2,
                        cue=event.cue // 2) for event in stream.events])


def prepare(folder: Path, sizes: dict[str, int], seed: int = 0) -> dict:
    """Write the streams of all splits, unless they exist.

    The files of the split 'test' have twice the frame rate.

    Args:
        folder: Folder for the streams.
        sizes: Number of streams per split.
        seed: Seed of the patterns and the streams. Defaults to 0.

    Returns:
        Figures on the test streams: ``chance`` knows everything except the
        classes, ``oracle`` also reads the cues.
    """

    def write() -> dict[str, dict[str, float]]:
        for split, count in sizes.items():
            drawn = [make_stream(seed, split, i, 1 + (split == 'test'))
                     for i in range(count)]
            frames = np.stack([stream.features for stream in drawn])
            frames = (MEAN + NOISE * frames).round().clip(0, 255)
            arrays = Pixels(
                frames.astype(np.uint8).reshape(
                    *frames.shape[:2], 3, SIDE, SIDE),
                np.stack([stream.targets for stream in drawn]),
                np.stack([stream.distances for stream in drawn]))
            for name, array in arrays._asdict().items():
                np.save(folder / f'{split}_{name}.npy', array)
            if split == 'test':
                looks = patterns(seed)['cue']
                drawn = [*map(at_half_rate, drawn)]
                limits = {
                    name: streams.oracle(looks, drawn, with_cues, BINS)
                    for name, with_cues in (('chance', False),
                                            ('oracle', True))}
        return limits

    return prepare_once(folder, dict(
        task='pixels', seed=seed, sizes=sizes, bins=BINS, frames=FRAMES,
        side=SIDE, cells=CELLS, options=OPTIONS,
        noise=(MEAN, NOISE, CONTRAST)), write)


def read(folder: Path, split: str) -> Pixels:
    """Map the streams of a split into memory."""
    return Pixels(*(
        np.load(folder / f'{split}_{name}.npy', mmap_mode='r',
                allow_pickle=False) for name in Pixels._fields))
