# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write untrimmed videos whose labels need a memory.

    python tools/data/online/make_pixels.py data/online_pixels

The videos are small, and have the layout of `VideoStreamDataset`. A cue is one
of four coarse colored patterns. All actions show the same pattern, and the
class of an action is the latest cue, 4 to 500 frames before. Cues are classes
too.

The validation videos are of three kinds, by the distance of their actions from
the cue: near (4 to 31 frames), mid (32 to 99) and far (100 to 500). `val.csv`
lists all of them, and `val_near.csv`, `val_mid.csv` and `val_far.csv` one kind
each, so that the AP on a list shows how far back a model remembers.
"""
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tools.data.generated_set import (
    check_sizes,
    options_of_set,
    run_generator,
    write_set,
    write_video,
)

FPS, NUM_CLASSES = 25, 4
# The sign appears before each action, so that actions can be anticipated.
CUE_FRAMES, SIGN_FRAMES = 8, 4
# Least and most frames of an action, and between two actions.
ACTION_FRAMES, GAP_FRAMES = (8, 16), (8, 32)
# Gray level of the background, and cells of a pattern along each side.
MEAN, CELLS = 128., 4
# Kinds of validation videos: least and most frames from a cue to its first
# action, and to the next cue.
KINDS = dict(
    near=dict(first_gap=(4, 12), turn=(28, 40)),
    mid=dict(first_gap=(32, 48), turn=(80, 108)),
    far=dict(first_gap=(100, 160), turn=(250, 509)))


@dataclass(frozen=True)
class Recipe:
    """Settings of the videos.

    Args:
        frames: Length of a video. Defaults to 1000.
        side: Height and width in pixels, a multiple of 4. Defaults to 32.
        noise: Standard deviation of the noise of each frame, in gray levels.
            Defaults to 8.
        contrast: Standard deviation of a pattern of strength 1, relative to
            the noise. Defaults to 3.
        strength: Least and most strength of a cue. Defaults to (1, 2).
        first_gap: Least and most frames from the end of a cue to the first
            action. Defaults to (4, 12).
        turn: Least and most frames from the end of a cue to the next one.
            Actions end before the next cue. Defaults to (60, 509).
    """
    frames: int = 1000
    side: int = 32
    noise: float = 8.
    contrast: float = 3.
    strength: tuple[float, float] = (1., 2.)
    first_gap: tuple[int, int] = (4, 12)
    turn: tuple[int, int] = (60, 509)

    def __post_init__(self) -> None:
        if self.side < CELLS or self.side % CELLS:
            raise ValueError(f'side must be a multiple of {CELLS}, got '
                             f'{self.side}')
        if min(self.noise, self.contrast) <= 0:
            raise ValueError('noise and contrast must be above 0, got '
                             f'{self.noise} and {self.contrast}')
        # The first cue of a video may start at frame 99.
        least = 100 + CUE_FRAMES + KINDS['far']['first_gap'][1] + 16
        if self.frames < least:
            raise ValueError(f'frames must be at least {least}, so that far '
                             f'videos have actions, got {self.frames}')


class Event(NamedTuple):
    """Event of a video: a cue, or an action with the class of a cue.

    Attributes:
        kind: 'cue' or 'action'.
        label: Number of the class.
        start: First frame.
        end: Frame after the last frame.
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
    """Pixels and labels of a video.

    Attributes:
        features: ``(T, 3 H W)`` float32, in standard deviations of the noise.
        targets: ``(T, K)`` uint8.
        events: Events in order of time.
    """
    features: np.ndarray
    targets: np.ndarray
    events: list[Event]


def class_names() -> list[str]:
    """Return the class names, with the background first."""
    return ['background'] + [f'{kind}_{label}' for kind in ('cue', 'action')
                             for label in range(NUM_CLASSES)]


def patterns(seed: int, recipe: Recipe) -> dict[str, np.ndarray]:
    """Return the patterns ``(count, 3 H W)`` of cues, actions and the sign."""
    rng, size = np.random.default_rng([seed, 9]), recipe.side // CELLS
    counts = dict(cue=NUM_CLASSES, action=1, sign=1)
    return {
        name: recipe.contrast * rng.normal(
            size=(count, 3, CELLS, CELLS)).repeat(size, axis=2).repeat(
            size, axis=3).reshape(count, -1)
        for name, count in counts.items()
    }


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniformly distributed."""
    return low * (high / low)**rng.uniform()


def place_events(rng: np.random.Generator, recipe: Recipe) -> list[Event]:
    """Draw the events of a video, in order of time."""
    events: list[Event] = []
    time = int(rng.uniform(0, 100))
    while time + CUE_FRAMES <= recipe.frames:
        end = time + CUE_FRAMES
        cue = Event('cue', int(rng.integers(NUM_CLASSES)), time, end, time,
                    _between(rng, *recipe.strength))
        events.append(cue)
        time = end + int(_between(rng, *recipe.turn))
        gap = recipe.first_gap
        while True:
            start = end + int(rng.integers(*gap))
            end = start + int(rng.integers(*ACTION_FRAMES))
            if end > min(time, recipe.frames):
                break
            events.append(cue._replace(
                kind='action', start=start, end=end, strength=1.))
            gap = GAP_FRAMES
    return sorted(events, key=lambda event: event.start)


def make_stream(key: Sequence[int], looks: Mapping[str, np.ndarray],
                recipe: Recipe) -> Stream:
    """Draw a video.

    Args:
        key: Seeds of the video.
        looks: Patterns, see :func:`patterns`.
        recipe: Settings of the video.
    """
    rng = np.random.default_rng(key)
    events = place_events(rng, recipe)
    features = rng.standard_normal(
        (recipe.frames, 3 * recipe.side**2), np.float32)
    targets = np.zeros((len(features), len(class_names())), np.uint8)
    for event in events:
        here = slice(event.start, event.end)
        targets[here, 1 + event.label
                + NUM_CLASSES * (event.kind == 'action')] = 1
        if event.kind == 'cue':
            features[here] += event.strength * looks['cue'][event.label]
        else:
            features[here] += looks['action'][0]
            features[event.start - SIGN_FRAMES:event.start] += looks['sign'][0]
    targets[:, 0] = ~targets.any(axis=1)
    return Stream(features, targets, events)


def frames_of(stream: Stream, recipe: Recipe) -> np.ndarray:
    """Return the frames of a stream, uint8 RGB [T, 3, side, side]."""
    frames = (MEAN + recipe.noise * stream.features).round().clip(0, 255)
    return frames.astype(np.uint8).reshape(-1, 3, recipe.side, recipe.side)


def make_pixels(out: Path, num_train: int, num_val: int, seed: int,
                recipe: Recipe = Recipe(), overwrite: bool = False) -> bool:
    """Write the set into a folder, unless it exists.

    Args:
        out: Folder of the set.
        num_train: Number of training videos.
        num_val: Number of validation videos of each kind.
        seed: Seed of the patterns and videos.
        recipe: Settings of the videos.
        overwrite: Replace another set.

    Returns:
        True if the set was written.

    Raises:
        FileExistsError: If the folder has other files, or another set without
            `overwrite`.
    """
    check_sizes(num_train, num_val, seed)
    settings = dict(generator='make_pixels.py', version=2, seed=seed,
                    train=num_train, val=num_val, fps=FPS, kinds=KINDS,
                    recipe=asdict(recipe))
    recipes = dict(train=recipe, **{
        f'val_{kind}': replace(recipe, **limits)
        for kind, limits in KINDS.items()})

    def write() -> None:
        shutil.rmtree(out / 'videos', ignore_errors=True)
        (out / 'videos').mkdir()
        looks, events, names = patterns(seed, recipe), {}, class_names()
        lists: dict[str, list[str]] = {}
        for number, (name, own) in enumerate(recipes.items()):
            rows = lists[name] = []
            for i in range(num_val if number else num_train):
                video = f'{name}_{i:04d}'
                stream = make_stream([seed, number, i], looks, own)
                write_video(out / f'videos/{video}.mp4',
                            frames_of(stream, own).transpose(0, 2, 3, 1), FPS)
                events[video] = [one._asdict() for one in stream.events]
                rows += [f'{video},{one.start / FPS:g},{one.end / FPS:g},'
                         f'{one.kind}_{one.label}' for one in stream.events]
        lists['val'] = sum((lists[f'val_{kind}'] for kind in KINDS), [])
        for name, rows in lists.items():
            (out / f'{name}.csv').write_text(
                '\n'.join(['video,start,end,label', *rows]) + '\n')
        (out / 'classes.txt').write_text('\n'.join(names) + '\n')
        (out / 'events.json').write_text(json.dumps(events))

    return write_set(out, settings, overwrite, write)


def main() -> None:
    parser = options_of_set(__doc__, 'videos', train=60, val=8,
                            val_of='videos of each kind for validation')
    add = parser.add_argument
    add('--frames', type=int, default=1000,
        help='length of a video (default: 1000)')
    add('--side', type=int, default=32,
        help='height and width in pixels (default: 32)')
    add('--noise', type=float, default=8.,
        help='standard deviation of the noise, in gray levels (default: 8)')
    add('--contrast', type=float, default=3.,
        help='standard deviation of the patterns relative to the noise '
        '(default: 3)')
    args = parser.parse_args()
    run_generator(args.out, lambda: make_pixels(
        args.out, args.train, args.val, args.seed,
        Recipe(args.frames, args.side, args.noise, args.contrast),
        args.overwrite))


if __name__ == '__main__':
    main()
