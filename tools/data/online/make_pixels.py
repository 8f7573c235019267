# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write untrimmed videos whose labels need a memory.

    python tools/data/online/make_pixels.py data/online_pixels

The videos are small, and have the layout of `VideoStreamDataset`. An action is
a bright moving shape, which looks the same for all classes of its kind. The
class is the color of a cue, a square that appears before the action:

* `near_0`, ...: 4 to 15 frames before the action (with the default limits);
* `mid_0`, ...: 16 to 99 frames before;
* `far_0`, ...: 100 to 500 frames before.

Each kind of cue has its own colors, so that cues of other kinds between a cue
and its action do not matter. The AP of a class therefore shows how far back a
model remembers.
"""
import json
import math
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tools.data.generated_set import check_sizes, write_set
from tools.harness import parser_of

KINDS = ('near', 'mid', 'far')
SPLITS = ('train', 'val')
FPS = 25
CUE_FRAMES = 4
# Least and most frames of an action, and between two events.
ACTION_FRAMES = 12, 24
GAP = 3
CUE_SIDE = 12
# Width and height of the shape of each kind.
SHAPES = dict(near=(20, 4), mid=(4, 20), far=(12, 12))


@dataclass(frozen=True)
class Recipe:
    """Settings of the videos.

    Args:
        frames: Mean length of a video; lengths vary by up to a tenth. Defaults
            to 1000.
        side: Height and width in pixels. Defaults to 32.
        classes: Number of classes of each kind. Defaults to 3.
        noise: Standard deviation of the noise of each frame, in gray levels.
            Defaults to 8.
        limits: Least distance of each kind from the start of a cue to the
            start of its action, and the most distance of the last kind, in
            frames. Defaults to (4, 16, 100, 500).
    """
    frames: int = 1000
    side: int = 32
    classes: int = 3
    noise: float = 8.
    limits: tuple[int, int, int, int] = (4, 16, 100, 500)

    def __post_init__(self) -> None:
        for name, least in (('side', 24), ('classes', 2), ('noise', 0)):
            if getattr(self, name) < least:
                raise ValueError(f'{name} must be at least {least}, got '
                                 f'{getattr(self, name)}')
        if list(self.limits) != sorted({*self.limits}) or (
                self.limits[0] < CUE_FRAMES):
            raise ValueError('limits must be ascending, from at least '
                             f'{CUE_FRAMES}, got {self.limits}')
        if self.frames < 1.5 * self.limits[-1]:
            raise ValueError(
                'frames must be at least 1.5 times the last of the limits '
                f'({self.limits[-1]}), got {self.frames}')

    @property
    def names(self) -> list[str]:
        """Return the class names, with the background first."""
        return ['background'] + [
            f'{kind}_{i}' for kind in KINDS for i in range(self.classes)]

    def colors(self, kind: str) -> np.ndarray:
        """Return the colors of a kind's cues on a circle, RGB [classes, 3]."""
        number = KINDS.index(kind) + len(KINDS) * np.arange(self.classes)
        angle = 2 * np.pi * number / (len(KINDS) * self.classes)
        return 128 + 127 * np.cos(
            angle[:, None] - 2 * np.pi / 3 * np.arange(3))


class Event(NamedTuple):
    """Action of a video with its cue; all times are in frames."""
    kind: str
    label: int
    cue: int
    start: int
    end: int


def draw_events(rng: np.random.Generator, frames: int,
                recipe: Recipe) -> list[Event]:
    """Draw the events of a video, sorted by their start.

    The cues and actions of one kind alternate, and no two events overlap.
    """
    taken = np.zeros(frames, bool)
    events = []
    # The rarest first.
    for place in reversed(range(len(KINDS))):
        low, high = recipe.limits[place:place + 2]
        last = place == len(KINDS) - 1
        # Log-uniform distances.
        now = int(rng.integers(5, 25))
        while True:
            distance = int(math.exp(rng.uniform(
                math.log(low), math.log(high + last))))
            start = now + distance
            end = start + int(rng.integers(*ACTION_FRAMES, endpoint=True))
            if end + GAP > frames:
                break
            spans = [slice(max(0, now - GAP), now + CUE_FRAMES),
                     slice(max(now + CUE_FRAMES, start - GAP), end + GAP)]
            if any(taken[span].any() for span in spans):
                now += 1
                continue
            for span in spans:
                taken[span] = True
            events.append(Event(KINDS[place], int(rng.integers(
                recipe.classes)), now, start, end))
            now = end + int(rng.integers(10, 30))
    return sorted(events, key=lambda event: event.start)


def render(rng: np.random.Generator, frames: int, events: list[Event],
           recipe: Recipe) -> np.ndarray:
    """Draw the frames of a video, uint8 RGB [T, side, side, 3]."""
    side = recipe.side
    coarse = np.float32(rng.uniform(20, 60, (4, 4, 1)))
    texture = cv2.resize(coarse, (side, side))[..., None]
    video = np.float32(texture + rng.normal(
        0, recipe.noise, (frames, side, side, 3)))
    for event in events:
        color = recipe.colors(event.kind)[event.label]
        y, x = rng.integers(0, side - CUE_SIDE, 2, endpoint=True)
        video[event.cue:event.cue + CUE_FRAMES,
              y:y + CUE_SIDE, x:x + CUE_SIDE] = color
        width, height = SHAPES[event.kind]
        place = rng.uniform(0, [side - width, side - height])
        speed = rng.uniform(.5, 1, 2) * rng.choice([-1, 1], 2)
        room = np.array([side - width, side - height])
        for frame in range(event.start, event.end):
            # The shape bounces off the borders.
            moved = (place + speed * (frame - event.start)) % (2 * room)
            x, y = np.rint(np.minimum(moved, 2 * room - moved)).astype(int)
            video[frame, y:y + height, x:x + width] = 230
    return np.rint(video).clip(0, 255).astype(np.uint8)


def make_video(seed: int, split: str, index: int,
               recipe: Recipe) -> tuple[np.ndarray, list[Event]]:
    """Draw a video, which depends only on the seed, split and index.

    Returns:
        Frames, uint8 RGB [T, side, side, 3], and events.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    frames = int(recipe.frames * rng.uniform(0.9, 1.1))
    events = draw_events(rng, frames, recipe)
    return render(rng, frames, events, recipe), events


def write_video(path: Path, frames: np.ndarray) -> None:
    """Write frames as an mp4 file."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), FPS,
                             frames.shape[2:0:-1])
    if not writer.isOpened():
        raise OSError(f'OpenCV cannot write {path} with mp4v')
    for frame in frames:
        writer.write(frame[..., ::-1])
    writer.release()


def make_pixels(out: Path, num_train: int, num_val: int, seed: int,
                recipe: Recipe = Recipe(), overwrite: bool = False) -> bool:
    """Write the set into a folder, unless it exists.

    Returns:
        True if the set was written.

    Raises:
        FileExistsError: If the folder has other files, or another set without
            `overwrite`.
    """
    check_sizes(num_train, num_val, seed)
    settings = dict(generator='make_pixels.py', version=1, seed=seed,
                    train=num_train, val=num_val, fps=FPS,
                    recipe=asdict(recipe))

    def write() -> None:
        shutil.rmtree(out / 'videos', ignore_errors=True)
        (out / 'videos').mkdir()
        found = {}
        for split, count in zip(SPLITS, (num_train, num_val)):
            lines = ['video,start,end,label']
            for i in range(count):
                name = f'{split}_{i:04d}'
                frames, events = make_video(seed, split, i, recipe)
                write_video(out / f'videos/{name}.mp4', frames)
                found[name] = [event._asdict() for event in events]
                lines += [f'{name},{event.start / FPS:g},{event.end / FPS:g},'
                          f'{event.kind}_{event.label}' for event in events]
            (out / f'{split}.csv').write_text('\n'.join(lines) + '\n')
        (out / 'classes.txt').write_text('\n'.join(recipe.names) + '\n')
        (out / 'events.json').write_text(json.dumps(found))

    return write_set(out, settings, overwrite, write)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('out', type=Path, help='folder for the set')
    parser.add_argument('--train', type=int, default=60,
                        help='number of training videos (default: 60)')
    parser.add_argument('--val', type=int, default=12,
                        help='number of validation videos (default: 12)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--frames', type=int, default=1000,
                        help='mean length of a video (default: 1000)')
    parser.add_argument('--side', type=int, default=32,
                        help='height and width in pixels (default: 32)')
    parser.add_argument('--classes', type=int, default=3,
                        help='classes of each of the three kinds (default: 3)')
    parser.add_argument('--noise', type=float, default=8.,
                        help='standard deviation of the noise, in gray levels '
                        '(default: 8)')
    parser.add_argument('--limits', type=int, nargs=4,
                        default=(4, 16, 100, 500), metavar='FRAMES',
                        help='least frames from a cue to a near, mid and far '
                        'action, and the most (default: 4 16 100 500)')
    parser.add_argument('--overwrite', action='store_true',
                        help='replace another set')
    args = parser.parse_args()
    try:
        recipe = Recipe(args.frames, args.side, args.classes, args.noise,
                        tuple(args.limits))
        written = make_pixels(args.out, args.train, args.val, args.seed,
                              recipe, args.overwrite)
    except (ValueError, OSError) as error:
        sys.exit(f'make_pixels.py: error: {error}')
    print(f'{args.out}: '
          + ('written' if written else 'exists already, nothing to do'))


if __name__ == '__main__':
    main()
