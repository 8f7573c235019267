# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write long videos with events in clutter.

    python tools/data/online/make_events.py data/events

An event of class red, yellow, green or blue is a square of this color that
moves for 3 to 40 s. The clutter consists of gray shapes, of squares in colors
between two classes, which move like events, and of flashes in the colors of
the classes, which last less than a second. ``annotations.csv`` lists the
events for ``mmvidattn finetune --stream``; the subset of a video is ``train``,
``val`` or ``test``.
"""
import argparse
import csv
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tools.data.generated_set import run_generator, write_set, write_video

FPS = 10
CLASSES = 'red', 'yellow', 'green', 'blue'
# Hues of the classes, and of the clutter between them, on a circle of 180.
HUES = dict(zip(CLASSES, (0, 30, 60, 120)))
CLUTTER_HUES = 15, 45, 90, 150
SUBSETS = 'train', 'val', 'test'
# Shortest and longest duration, and time between two of a kind, in seconds.
EVENT_SECONDS, EVENT_GAP = (3, 40), (2, 20)
CLUTTER_SECONDS, CLUTTER_GAP = (3, 20), (5, 40)
FLASH_SECONDS, FLASH_GAP = (.2, .9), (5, 25)
# Pixels per frame, for a video of 64 x 64.
SPEED = 2., 4.
SIDE = 18


@dataclass(frozen=True)
class Recipe:
    """Settings of the videos.

    Args:
        seconds: Mean length of a video; lengths vary by up to a tenth.
            Defaults to 240.
        side: Height and width in pixels. Defaults to 64.
        noise: Standard deviation of the noise of each frame, in gray levels.
            Defaults to 12.
        gray: Number of gray shapes that move. Defaults to 3.
        contrast: Least contrast of an event, in (0, 1]. Defaults to 0.5.
    """
    seconds: float = 240
    side: int = 64
    noise: float = 12.
    gray: int = 3
    contrast: float = .5

    def __post_init__(self) -> None:
        for name, least in (('seconds', 60), ('side', 2 * SIDE), ('noise', 0),
                            ('gray', 0), ('contrast', .05)):
            if getattr(self, name) < least:
                raise ValueError(f'{name} must be at least {least}, got '
                                 f'{getattr(self, name)}')
        if self.contrast > 1:
            raise ValueError(f'contrast must be at most 1, got '
                             f'{self.contrast}')


class Event(NamedTuple):
    """Event of a video, in frames."""
    label: str
    start: int
    end: int


def make_texture(rng: np.random.Generator, side: int, low: float,
                 high: float) -> np.ndarray:
    """Draw a smooth gray background, float32 [side, side, 1]."""
    coarse = np.float32(rng.uniform(low, high, (4, 4, 1)))
    return cv2.resize(coarse, (side, side))[..., None]


def bounce(rng: np.random.Generator, frames: int, room: np.ndarray,
           speed: Sequence[float]) -> Iterator[np.ndarray]:
    """Yield the position of a shape that bounces off the borders.

    Args:
        rng: Random generator.
        frames: Number of positions.
        room: Largest position, [x, y].
        speed: Least and most pixels per frame along x and along y.
    """
    place = rng.uniform(0, room)
    step = rng.uniform(*speed, 2) * rng.choice([-1, 1], 2)
    for frame in range(frames):
        moved = (place + step * frame) % (2 * room)
        yield np.rint(np.minimum(moved, 2 * room - moved)).astype(int)


def draw_spans(rng: np.random.Generator, frames: int, seconds: tuple,
               gap: tuple) -> list[tuple[int, int]]:
    """Draw log-uniform durations, one after the other, as (start, end)."""
    spans, now = [], int(FPS * rng.uniform(*gap))
    while True:
        end = now + max(1, round(FPS * math.exp(rng.uniform(
            *np.log(seconds)))))
        if end > frames:
            return spans
        spans.append((now, end))
        now = end + int(FPS * rng.uniform(*gap))


def color_of(hue: int) -> np.ndarray:
    """Return the bright color of a hue in [0, 180), RGB."""
    return np.float32(cv2.cvtColor(np.uint8([[[hue, 210, 225]]]),
                                   cv2.COLOR_HSV2RGB)[0, 0])


def render(rng: np.random.Generator, frames: int, events: list[Event],
           recipe: Recipe) -> np.ndarray:
    """Draw the frames of a video, uint8 RGB [T, side, side, 3]."""
    side = recipe.side
    video = np.float32(make_texture(rng, side, 40, 110) + rng.normal(
        0, recipe.noise, (frames, side, side, 3)))
    speed = np.multiply(SPEED, side / 64)

    def draw(start: int, end: int, color: np.ndarray | float,
             size: np.ndarray, contrast: float) -> None:
        for i, (x, y) in enumerate(bounce(rng, end - start, side - size,
                                          speed)):
            part = video[start + i, y:y + size[1], x:x + size[0]]
            part += contrast * (color - part)

    for _ in range(recipe.gray):
        draw(0, frames, rng.uniform(110, 230), rng.integers(6, 20, 2), 1.)
    square = np.array([SIDE, SIDE])
    for hues, *spans in ((CLUTTER_HUES, CLUTTER_SECONDS, CLUTTER_GAP),
                         ([*HUES.values()], FLASH_SECONDS, FLASH_GAP)):
        for span in draw_spans(rng, frames, *spans):
            draw(*span, color_of(rng.choice(hues)), square,
                 rng.uniform(recipe.contrast, 1))
    for label, start, end in events:
        draw(start, end, color_of(HUES[label]), square,
             rng.uniform(recipe.contrast, 1))
    return np.rint(video).clip(0, 255).astype(np.uint8)


def make_video(seed: int, index: int, recipe: Recipe
               ) -> tuple[np.ndarray, list[Event]]:
    """Draw a video, which depends only on the seed, index and recipe.

    Returns:
        Frames, uint8 RGB [T, side, side, 3], and events.
    """
    rng = np.random.default_rng([seed, index])
    frames = int(recipe.seconds * FPS * rng.uniform(.9, 1.1))
    events = [Event(str(rng.choice(CLASSES)), *span) for span in draw_spans(
        rng, frames, EVENT_SECONDS, EVENT_GAP)]
    return render(rng, frames, events, recipe), events


def make_events(out: Path, videos: int = 10, seed: int = 0,
                recipe: Recipe = Recipe(), overwrite: bool = False) -> bool:
    """Write the set into a folder, unless it exists.

    A fifth of the videos have the subset ``val``, another fifth ``test``.

    Returns:
        True if the set was written.

    Raises:
        FileExistsError: If the folder has other files, or another set without
            ``overwrite``.
    """
    if videos < 5 or seed < 0:
        raise ValueError('videos must be at least 5, and seed at least 0, got '
                         f'{videos} and {seed}')
    settings = dict(generator='make_events.py', version=1, seed=seed,
                    videos=videos, fps=FPS, recipe=asdict(recipe))

    def write() -> None:
        shutil.rmtree(out / 'videos', ignore_errors=True)
        (out / 'videos').mkdir()
        rows = [['video', 'start', 'end', 'label', 'subset']]
        for i in range(videos):
            frames, events = make_video(seed, i, recipe)
            name = f'day_{i:02d}.mp4'
            write_video(out / 'videos' / name, frames, FPS)
            # Days 3, 8, ... are for validation, days 4, 9, ... for the test.
            subset = SUBSETS[max(0, i % 5 - 2)]
            rows += [[name, event.start / FPS, event.end / FPS, event.label,
                      subset] for event in events]
        with open(out / 'annotations.csv', 'w', newline='') as file:
            csv.writer(file, lineterminator='\n').writerows(rows)

    return write_set(out, settings, overwrite, write)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('out', type=Path, help='folder for the set')
    add('--videos', type=int, default=10,
        help='number of videos (default: 10)')
    add('--seed', type=int, default=0)
    add('--seconds', type=float, default=240,
        help='mean length of a video, at least 60 (default: 240)')
    add('--side', type=int, default=64,
        help='height and width in pixels, at least 36 (default: 64)')
    add('--noise', type=float, default=12.,
        help='standard deviation of the noise, in gray levels (default: 12)')
    add('--gray', type=int, default=3,
        help='number of gray shapes that move (default: 3)')
    add('--contrast', type=float, default=.5,
        help='least contrast of an event (default: 0.5)')
    add('--overwrite', action='store_true', help='replace another set')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    run_generator(args.out, lambda: make_events(
        args.out, args.videos, args.seed, Recipe(
            args.seconds, args.side, args.noise, args.gray, args.contrast),
        args.overwrite))


if __name__ == '__main__':
    main()
