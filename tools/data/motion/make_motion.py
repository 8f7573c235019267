# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a set of short videos whose class can be seen only in motion.

    python tools/data/motion/make_motion.py data/motion

A clip shows a textured shape on a textured background. The column, row, size
and angle of the shape are cyclic, and each starts at a uniformly drawn phase
of its cycle. The class only determines which of the four changes, and in which
direction. A uniform phase stays uniform when it is shifted, so single frames
have the same distribution in every class at any time, and a model that sees
one frame cannot exceed chance.

``--motions double`` writes four other classes, each of two motions at once, of
other shapes: something to fine-tune on.
"""
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tools.data.generated_set import (
    check_sizes,
    options_of_set,
    run_generator,
    write_set,
    write_video,
)

# Name: (which phase moves, the sign of its motion).
MOTIONS = {
    'move left': ('x', -1),
    'move right': ('x', 1),
    'move up': ('y', -1),
    'move down': ('y', 1),
    'grow': ('size', 1),
    'shrink': ('size', -1),
    'rotate clockwise': ('angle', 1),
    'rotate counter-clockwise': ('angle', -1),
}
CLASSES = tuple(MOTIONS)
# Classes and shapes that a model of the classes above has never seen.
DOUBLE_MOTIONS = {
    'move down right': (('x', 1), ('y', 1)),
    'move up left': (('x', -1), ('y', -1)),
    'grow clockwise': (('size', 1), ('angle', 1)),
    'shrink counter-clockwise': (('size', -1), ('angle', -1)),
}
# Moving phases of each class, by set.
SETS = dict(
    single={name: (moving, ) for name, moving in MOTIONS.items()},
    double=DOUBLE_MOTIONS)

# Share of its period that the moving phase covers in one clip. Eight evenly
# spaced frames are then at most an eighth of a period apart. From half a
# period on, a motion would seem to go backwards. The size jumps back once it
# has run through its period, so it stays below one period.
SPEEDS = {
    'x': (0.5, 1.0),
    'y': (0.5, 1.0),
    'size': (0.5, 0.8),
    'angle': (0.4, 1.0),
}
# Radius of the shape, relative to the short side of the frame.
RADII = (0.24, 0.48)
# decord 0.6 fails if the padded line is a multiple of the width (48, 72 and,
# with wider registers, 96); these widths work with each padding.
SIDES = (64, 80, 88, 104, 112, 128)
NUM_FRAMES = (16, 40)
FPS = (10, 15, 20, 24, 25, 30)
SPLITS = ('train', 'val')

# Outlines in the unit disc; none maps onto itself under a rotation.
OUTLINES = {
    'L': [(-.6, -.8), (0, -.8), (0, .2), (.6, .2), (.6, .8), (-.6, .8)],
    'F': [(-.6, -.8), (.6, -.8), (.6, -.35), (0, -.35), (0, .05), (.45, .05),
          (.45, .4), (0, .4), (0, .8), (-.6, .8)],
    'arrow': [(1, 0), (.1, .8), (.1, .35), (-.9, .35), (-.9, -.35),
              (.1, -.35), (.1, -.8)],
    'wedge': [(1, 0), (-.85, .5), (-.55, -.8)],
    'flag': [(-.5, -.85), (.85, -.5), (-.1, 0), (-.1, .85), (-.5, .85)],
}
DOUBLE_OUTLINES = {
    'bolt': [(.3, -.9), (-.6, .15), (-.05, .15), (-.3, .9), (.65, -.2),
             (.1, -.2)],
    'hook': [(-.2, -.9), (.25, -.9), (.25, .85), (-.7, .85), (-.7, .2),
             (-.3, .2), (-.3, .45), (-.2, .45)],
    'sail': [(-.15, -.9), (.75, .45), (-.15, .45)],
    'crown': [(-.8, .6), (-.8, -.7), (-.3, .05), (0, -.8), (.3, .05),
              (.8, -.3), (.8, .6)],
}


class State(NamedTuple):
    """Place of the shape: the four phases, each in [0, 1)."""
    x: float
    y: float
    size: float
    angle: float


@dataclass(frozen=True)
class Clip:
    """Random properties of a clip, and its class."""
    label: int
    start: State
    speed: float
    width: int
    height: int
    num_frames: int
    fps: int
    texture_seed: int
    # Key of SETS that the label belongs to.
    motions: str = 'single'


def draw_clip(seed: int, split: str, index: int,
              motions: str = 'single') -> Clip:
    """Draw a clip, which depends only on the seed, split and index."""
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    classes = [*SETS[motions].values()]
    label = index % len(classes)
    start = State(*rng.random(4).tolist())
    # Drawn as a share of its range, so that no draw depends on the class.
    ranges = [SPEEDS[phase] for phase, _ in classes[label]]
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    speed = low + (high - low) * float(rng.random())
    width, height = rng.choice(SIDES, 2).tolist()
    return Clip(label, start, speed, width, height,
                int(rng.integers(*NUM_FRAMES, endpoint=True)),
                int(rng.choice(FPS)), int(rng.integers(2**31)), motions)


def state_at(clip: Clip, frame: int) -> State:
    """Return the state of the shape in a frame."""
    moved = clip.speed * frame / (clip.num_frames - 1)
    return clip.start._replace(**{
        name: (getattr(clip.start, name) + sign * moved) % 1.0
        for name, sign in [*SETS[clip.motions].values()][clip.label]
    })


def _noise(rng: np.random.Generator, width: int, height: int,
           cells: int) -> np.ndarray:
    coarse = rng.random((cells, cells), dtype=np.float32)
    smooth = cv2.resize(coarse, (width, height),
                        interpolation=cv2.INTER_CUBIC)
    return cv2.normalize(smooth, None, 0, 1, cv2.NORM_MINMAX)


def _pattern(rng: np.random.Generator, side: int) -> np.ndarray:
    kind = rng.choice(['stripes', 'checks', 'noise'])
    if kind == 'noise':
        return _noise(rng, side, side, int(rng.integers(4, 7)))
    rows, columns = np.mgrid[:side, :side] / side * rng.uniform(3, 5)
    wave = np.sin(np.pi * columns)
    if kind == 'checks':
        wave = wave * np.sin(np.pi * rows)
    return (wave > 0).astype(np.float32)


def _outline(rng: np.random.Generator, motions: str) -> np.ndarray:
    if motions == 'double':
        return np.array(DOUBLE_OUTLINES[rng.choice([*DOUBLE_OUTLINES])])
    kind = rng.choice([*OUTLINES, 'blob'])
    if kind != 'blob':
        return np.array(OUTLINES[kind])
    around = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    radius = 1 + sum(
        rng.uniform(0.15, 0.4) * np.cos(k * around + rng.uniform(0, 6.3))
        for k in (1, 2, 3))
    return np.stack([np.cos(around), np.sin(around)],
                    axis=1) * (radius / radius.max())[:, None]


def _paint(pattern: np.ndarray, colors: np.ndarray) -> np.ndarray:
    weight = pattern[..., None]
    return weight * colors[0] + (1 - weight) * colors[1]


def _sprite(rng: np.random.Generator, radius: float, colors: np.ndarray,
            motions: str) -> np.ndarray:
    """Draw a shape, ``(side, side, 4)``: BGR times alpha, and alpha."""
    center = int(np.ceil(radius)) + 2
    side = 2 * center + 1
    mask = np.zeros((side, side), np.uint8)
    # cv2 takes fixed-point coordinates: 4 bits after the point.
    corners = np.rint(
        16 * (radius * _outline(rng, motions) + center)).astype(np.int32)
    cv2.fillPoly(mask, [corners], 255, cv2.LINE_AA, shift=4)
    alpha = mask[..., None].astype(np.float32) / 255
    paint = _paint(_pattern(rng, side), colors)
    return np.concatenate([alpha * paint, alpha], axis=2)


def _place(sprite: np.ndarray, state: State, width: int,
           height: int) -> np.ndarray:
    """Draw the shape in its state, ``(height, width, 4)``."""
    center = len(sprite) // 2
    scale = (RADII[0] / RADII[1])**(1 - state.size)
    angle = 2 * np.pi * state.angle
    shift = np.array([state.x * width, state.y * height])
    whole = np.floor(shift)
    # Rows point down, so this turns clockwise on the screen.
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)],
                             [np.sin(angle), np.cos(angle)]])
    middle = np.array([width // 2, height // 2]) + shift - whole
    offset = middle - turn @ [center, center]
    layer = cv2.warpAffine(sprite, np.column_stack([turn, offset]),
                           (width, height))
    # The frame is a torus: a shape that leaves on one side enters on the
    # opposite side.
    return np.roll(layer, whole.astype(int)[::-1], axis=(0, 1))


def render(clip: Clip) -> Iterator[np.ndarray]:
    """Yield the frames of a clip, each ``(height, width, 3)`` uint8 in BGR."""
    rng = np.random.default_rng(clip.texture_seed)
    width, height = clip.width, clip.height
    # The shape is always bright and the background dark, so that only the
    # motion is difficult.
    back, fore = (np.float32(rng.uniform(low, high, (2, 3)))
                  for low, high in ((0, 80), (175, 255)))
    background = _paint(
        _noise(rng, width, height, int(rng.integers(3, 9))), back)
    sprite = _sprite(rng, RADII[1] * min(width, height), fore, clip.motions)
    for frame in range(clip.num_frames):
        layer = _place(sprite, state_at(clip, frame), width, height)
        image = background * (1 - layer[..., 3:]) + layer[..., :3]
        yield np.rint(image).clip(0, 255).astype(np.uint8)


def write_clip(job: tuple[str, int], out: Path, seed: int,
               motions: str = 'single') -> str:
    """Write one video; returns its line of the annotation file."""
    split, index = job
    clip = draw_clip(seed, split, index, motions)
    name = f'{split}/{index:06d}.mp4'
    write_video(out / name, np.stack([*render(clip)])[..., ::-1], clip.fps)
    return f'{name} {clip.label}\n'


def make_motion(out: Path,
                num_train: int,
                num_val: int,
                seed: int,
                overwrite: bool = False,
                motions: str = 'single') -> bool:
    """Write the set into a folder, unless it is there already.

    Returns:
        Whether anything was written.
    """
    check_sizes(num_train, num_val, seed)
    settings = dict(generator='make_motion.py', version=1, seed=seed,
                    train=num_train, val=num_val)
    if motions != 'single':
        settings['motions'] = motions

    def write() -> None:
        sizes = dict(train=num_train, val=num_val)
        for split in SPLITS:
            shutil.rmtree(out / split, ignore_errors=True)
            (out / split).mkdir()
        jobs = [(split, i) for split in SPLITS for i in range(sizes[split])]
        # A forked process would wait for OpenCV's threads in this one.
        cv2.setNumThreads(1)
        with ProcessPoolExecutor() as pool:
            lines = list(pool.map(
                partial(write_clip, out=out, seed=seed, motions=motions),
                jobs, chunksize=16))
        (out / 'train.txt').write_text(''.join(lines[:num_train]))
        (out / 'val.txt').write_text(''.join(lines[num_train:]))
        (out / 'label_map.txt').write_text('\n'.join(SETS[motions]) + '\n')

    return write_set(out, settings, overwrite, write)


def main() -> None:
    parser = options_of_set(__doc__, 'clips', train=2000, val=200)
    parser.add_argument('--motions', choices=SETS, default='single',
                        help='eight classes of one motion, or four of two at '
                        'once, of other shapes (default: single)')
    args = parser.parse_args()
    run_generator(args.out, lambda: make_motion(
        args.out, args.train, args.val, args.seed, args.overwrite,
        args.motions))


if __name__ == '__main__':
    main()
