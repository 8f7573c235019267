# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams of small noisy frames whose actions need a memory.

``tools/data/online/make_pixels.py`` draws the frames. They are smaller than
its videos' frames, and are stored as arrays. In the test, the
strength of cues varies, and some are almost hidden in the noise.

The frames of the test are drawn at twice the frame rate. The test at the
nominal rate uses every second frame of the same scene.
"""
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tools.data.online.cued_streams import Stream
from tools.data.online.make_pixels import (
    Recipe,
    frames_of,
    make_stream,
    patterns,
)
from tools.harness import prepare_once

from . import streams

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
RECIPE = Recipe(
    frames=1536, side=16, noise=24., contrast=.25, turn=(60, 500))
STRENGTH = dict(train=(1., 4.), val=(.1, 4.), test=(.1, 4.))


class Pixels(NamedTuple):
    """Streams of a split.

    Attributes:
        frames: ``(S, T, 3, H, W)`` uint8.
        targets: ``(S, T, K)`` uint8.
        distances: ``(S, T)``, see :class:`Stream`.
    """
    frames: np.ndarray
    targets: np.ndarray
    distances: np.ndarray


def draw(seed: int, split: str, index: int, rate: int = 1) -> Stream:
    """Draw a stream of a split, with ``rate`` frames per step of the events.
    """
    return make_stream([seed, [*SPLITS].index(split), index],
                       patterns(seed, RECIPE),
                       replace(RECIPE, strength=STRENGTH[split]), rate)


def at_half_rate(stream: Stream) -> Stream:
    """Return every second frame of a stream with ``rate=2``."""
    return Stream(
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
            drawn = [draw(seed, split, i, 1 + (split == 'test'))
                     for i in range(count)]
            arrays = Pixels(
                np.stack([frames_of(stream, RECIPE) for stream in drawn]),
                np.stack([stream.targets for stream in drawn]),
                np.stack([stream.distances for stream in drawn]))
            for name, array in arrays._asdict().items():
                np.save(folder / f'{split}_{name}.npy', array)
            if split == 'test':
                looks = patterns(seed, RECIPE)['cue']
                drawn = [*map(at_half_rate, drawn)]
                limits = {
                    name: streams.oracle(looks, drawn, with_cues, BINS)
                    for name, with_cues in (('chance', False),
                                            ('oracle', True))}
        return limits

    return prepare_once(folder, dict(
        task='pixels', seed=seed, sizes=sizes, bins=BINS,
        recipe=asdict(RECIPE), strength=STRENGTH), write)


def read(folder: Path, split: str) -> Pixels:
    """Map the streams of a split into memory."""
    return Pixels(*(
        np.load(folder / f'{split}_{name}.npy', mmap_mode='r',
                allow_pickle=False) for name in Pixels._fields))
