# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Clips of a moving shape, from easy to very hard.

A bright shape moves in one of eight directions over a background that does not
move. The length of its path, its size and brightness, noise, clutter, and
dimmer shapes with other motions are drawn for each clip, so that accuracy
rises smoothly with the ability of a model. The middle of the path has the same
distribution for all classes, so that a single frame from the middle does not
show the class.

Clips are arrays; video files would only add compression errors and decoding
time.
"""
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tools.harness import prepare_once

NUM_FRAMES, SIDE, NUM_CLASSES = 8, 32, 8
# Clips are drawn in blocks, each with its own seed.
BLOCK = 250
# Clips per split: val chooses the learning rate, test and hard are reported.
SPLITS = dict(train=6000, val=1000, test=2000, hard=1000)
# Values for the easiest and the hardest clips: 'path' (distance that a shape
# moves in a clip) and 'radius' in pixels, 'distractors' as a number of shapes,
# and all further factors relative to white.
FACTORS = dict(
    path=(18., 1.5),
    radius=(7., 3.),
    contrast=(1., .4),
    noise=(0., .35),
    clutter=(0., .12),
    distractors=(0., 3.))
GRAY = .35


class Clips(NamedTuple):
    """Clips of a split.

    Attributes:
        frames: ``(N, T, H, W, 3)`` uint8.
        labels: ``(N,)`` int64.
        levels: Difficulty ``(N,)`` from 0 to 1.
        places: Middle of the shape's path in pixels, ``(N, 2)``: column, row.
    """
    frames: np.ndarray
    labels: np.ndarray
    levels: np.ndarray
    places: np.ndarray


def _paths(rng: np.random.Generator, labels: np.ndarray,
           lengths: np.ndarray) -> np.ndarray:
    """Draw the centers of shapes in pixels, ``(N, T, 2)``: column, row."""
    middle = rng.uniform(.3, .7, (len(labels), 1, 2)) * SIDE
    angle = labels * 2 * np.pi / NUM_CLASSES
    # Row numbers increase downwards, so -sin makes angles counter-clockwise.
    ahead = np.stack([np.cos(angle), -np.sin(angle)], axis=1)[:, None]
    time = np.linspace(-.5, .5, NUM_FRAMES)[None, :, None]
    return middle + ahead * lengths[:, None, None] * time


def _masks(rng: np.random.Generator, paths: np.ndarray,
           radii: np.ndarray) -> np.ndarray:
    """Draw ellipses as covered shares of pixels, ``(N, T, H, W, 1)``."""
    count = len(paths)
    grid = np.arange(SIDE) + .5
    x = grid[None, None, None, :] - paths[..., 0, None, None]
    y = grid[None, None, :, None] - paths[..., 1, None, None]
    flat, turn = rng.uniform(.5, 1, count), rng.uniform(0, np.pi, count)
    radii, flat, turn = (
        each[:, None, None, None] for each in (radii, flat, turn))
    along = np.cos(turn) * x + np.sin(turn) * y
    across = (np.cos(turn) * y - np.sin(turn) * x) / flat
    covered = np.clip(radii - np.hypot(along, across) + .5, 0, 1)
    return covered[..., None].astype(np.float32)


def _clutter(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw smooth patterns around 0, ``(N, 1, H, W, 3)``."""
    cells = rng.normal(size=(count, 5, 5, 3)).astype(np.float32)
    places = np.linspace(0, 4, SIDE)
    low = np.minimum(places.astype(int), 3)
    part = (places - low).astype(np.float32)[:, None]
    rows = (cells[:, low] * (1 - part[:, None])
            + cells[:, low + 1] * part[:, None])
    return (rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part)[:, None]


def _draw_factors(rng: np.random.Generator, levels: np.ndarray
                  ) -> dict[str, np.ndarray]:
    factors = {}
    for name, (easy, most) in FACTORS.items():
        share = levels * rng.uniform(.5, 1., len(levels))
        if name == 'path':
            # Logarithmic, because each halving of the path is equally harder.
            factors[name] = easy * (most / easy)**share
        else:
            factors[name] = easy + (most - easy) * share
    return factors


def _pictures(
        labels: np.ndarray, seeds: list[int], hard: bool,
        noise: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw images ``(N, T, H, W, 3)`` from 0 to 1, levels and places.

    The random numbers do not depend on the labels.
    """
    rng, count = np.random.default_rng(seeds), len(labels)
    levels = rng.uniform(.5 if hard else 0., 1., count)
    factors = {
        name: values[:, None, None, None, None].astype(np.float32)
        for name, values in _draw_factors(rng, levels).items()
    }
    radii = factors['radius'].ravel()
    images = GRAY + _clutter(rng, count) * factors['clutter']
    images = np.repeat(images, NUM_FRAMES, axis=1)

    def add(paths, contrast, there=1.):
        mask = _masks(rng, paths, radii) * there
        color = rng.uniform(.8, 1., (count, 1, 1, 1, 3)).astype(np.float32)
        paint = GRAY + (1 - GRAY) * contrast * color
        return images * (1 - mask) + mask * paint

    for i in range(int(FACTORS['distractors'][1])):
        paths = _paths(rng, rng.integers(NUM_CLASSES, size=count),
                       rng.uniform(0, 18, count))
        images = add(paths, .45 * factors['contrast'],
                     factors['distractors'] > i + .5)
    paths = _paths(rng, labels, factors['path'].ravel())
    images = add(paths, factors['contrast'])
    if noise:
        shape = images.shape
        images += rng.standard_normal(shape, np.float32) * factors['noise']
    return images, levels, paths.mean(axis=1)


def _block(seed: int, split: str, first: int, count: int,
           noise: bool = True, label: int | None = None) -> Clips:
    """Draw a block of clips of a split, all of class ``label`` if given."""
    labels = (first + np.arange(count)) % NUM_CLASSES
    images, levels, places = _pictures(
        labels if label is None else np.full(count, label),
        [seed, [*SPLITS].index(split), first], split == 'hard', noise)
    frames = np.rint(255 * images.clip(0, 1)).astype(np.uint8)
    return Clips(frames, labels, levels, places)


def blocks(count: int) -> list[tuple[int, int]]:
    """Return the first clip and the number of clips of each block."""
    return [(first, min(BLOCK, count - first))
            for first in range(0, count, BLOCK)]


def draw(seed: int, split: str, count: int) -> Clips:
    """Draw the first ``count`` clips of a split."""
    parts = [_block(seed, split, *block) for block in blocks(count)]
    return Clips(*map(np.concatenate, zip(*parts)))


def oracle(seed: int, split: str, count: int) -> float:
    """Return the accuracy in percent of an ideal classifier.

    The classifier knows everything about a clip except its class and its
    noise. It draws the clip once per class without noise, and chooses the
    nearest of these eight clips. This is optimal as long as the noise is not
    clipped at black and white.
    """
    right = 0
    for block in blocks(count):
        clips = _block(seed, split, *block)
        errors = [
            np.square(
                _block(seed, split, *block, noise=False, label=label).frames
                - clips.frames.astype(np.float32)).sum(axis=(1, 2, 3, 4))
            for label in range(NUM_CLASSES)
        ]
        right += int((np.argmin(errors, axis=0) == clips.labels).sum())
    return 100 * right / count


def prepare(folder: Path, sizes: dict[str, int],
            seed: int = 0) -> dict[str, float]:
    """Write the clips of all splits, unless they exist.

    Returns:
        Accuracy of the oracle on the splits 'test' and 'hard'.

    Raises:
        ValueError: If the folder has clips with other settings.
    """

    def write() -> dict[str, float]:
        for split, count in sizes.items():
            for name, array in draw(seed, split, count)._asdict().items():
                np.save(folder / f'{split}_{name}.npy', array)
        return {split: oracle(seed, split, sizes[split])
                for split in ('test', 'hard')}

    return prepare_once(folder, dict(
        task='motion', seed=seed, sizes=sizes, factors=FACTORS), write)


def read(folder: Path, split: str) -> Clips:
    """Map the clips of a split into memory."""
    return Clips(*(
        np.load(folder / f'{split}_{name}.npy', mmap_mode='r',
                allow_pickle=False) for name in Clips._fields))
