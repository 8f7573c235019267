# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a set of short videos whose class can be seen only in motion.

    python tools/data/motion/make_motion.py data/motion

A textured shape lies on a textured background. Its column, row, size and
angle each run through a circle of phases, and each starts at a phase drawn
uniformly. The class says which of the four moves, and in which direction;
nothing else depends on it. A uniform phase stays uniform when it is shifted,
so a frame on its own, taken at any time, has the same distribution in every
class, and a model that sees one frame cannot do better than chance.
"""
import argparse
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

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

# How much of its period the moving phase runs through in one clip. Eight
# evenly spaced frames are then at most an eighth of a period apart, far below
# the half at which a motion would seem to turn round. The size jumps back
# once it has run through its period, so it stays below one period.
SPEEDS = {
    'x': (0.5, 1.0),
    'y': (0.5, 1.0),
    'size': (0.5, 0.8),
    'angle': (0.4, 1.0),
}
# Radius of the shape, as a share of the short side of the frame.
RADII = (0.24, 0.48)
# decord 0.6 fails on a width (48, 72 and, with wider registers, 96) of which
# the padded line is a multiple; these pass with every padding.
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


class State(NamedTuple):
    """Where the shape is: the four phases, each in [0, 1)."""
    x: float
    y: float
    size: float
    angle: float


@dataclass(frozen=True)
class Clip:
    """All that is drawn at random for one clip, and its class."""
    label: int
    start: State
    speed: float
    width: int
    height: int
    num_frames: int
    fps: int
    texture_seed: int


def draw_clip(seed: int, split: str, index: int) -> Clip:
    """Draw the clip of a given place in a split; the others don't matter."""
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    label = index % len(CLASSES)
    start = State(*rng.random(4).tolist())
    # Drawn as a share of its range, so that no draw depends on the class.
    low, high = SPEEDS[MOTIONS[CLASSES[label]][0]]
    speed = low + (high - low) * float(rng.random())
    width, height = rng.choice(SIDES, 2).tolist()
    return Clip(label, start, speed, width, height,
                int(rng.integers(*NUM_FRAMES, endpoint=True)),
                int(rng.choice(FPS)), int(rng.integers(2**31)))


def state_at(clip: Clip, frame: int) -> State:
    """The state of the shape in a frame."""
    name, sign = MOTIONS[CLASSES[clip.label]]
    moved = sign * clip.speed * frame / (clip.num_frames - 1)
    phase = (getattr(clip.start, name) + moved) % 1.0
    return clip.start._replace(**{name: phase})


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


def _outline(rng: np.random.Generator) -> np.ndarray:
    kind = rng.choice([*OUTLINES, 'blob'])
    if kind != 'blob':
        return np.array(OUTLINES[kind])
    around = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    radius = 1 + sum(
        rng.uniform(0.15, 0.4) * np.cos(k * around + rng.uniform(0, 6.3))
        for k in (1, 2, 3))
    return np.stack([np.cos(around), np.sin(around)],
                    axis=1) * (radius / radius.max())[:, None]


def _paint(pattern: np.ndarray, colours: np.ndarray) -> np.ndarray:
    weight = pattern[..., None]
    return weight * colours[0] + (1 - weight) * colours[1]


def render(clip: Clip) -> Iterator[np.ndarray]:
    """The frames of a clip, each ``(height, width, 3)`` uint8 in BGR."""
    rng = np.random.default_rng(clip.texture_seed)
    width, height = clip.width, clip.height
    # Bright on dark throughout: what moves is easy to tell, how is the task.
    back = np.float32(rng.uniform(0, 80, (2, 3)))
    fore = np.float32(rng.uniform(175, 255, (2, 3)))
    background = _paint(
        _noise(rng, width, height, int(rng.integers(3, 9))), back)

    radius = RADII[1] * min(width, height)
    centre = int(np.ceil(radius)) + 2
    side = 2 * centre + 1
    mask = np.zeros((side, side), np.uint8)
    # cv2 takes fixed-point coordinates: 4 bits after the point.
    corners = np.rint(16 * (radius * _outline(rng) + centre)).astype(np.int32)
    cv2.fillPoly(mask, [corners], 255, cv2.LINE_AA, shift=4)
    alpha = mask[..., None].astype(np.float32) / 255
    patch = np.concatenate([alpha * _paint(_pattern(rng, side), fore), alpha],
                           axis=2)

    for frame in range(clip.num_frames):
        state = state_at(clip, frame)
        scale = (RADII[0] / RADII[1])**(1 - state.size)
        angle = 2 * np.pi * state.angle
        shift = np.array([state.x * width, state.y * height])
        whole = np.floor(shift)
        # Rows point down, so this turns clockwise on the screen.
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)],
                                 [np.sin(angle), np.cos(angle)]])
        middle = np.array([width // 2, height // 2]) + shift - whole
        offset = middle - turn @ [centre, centre]
        layer = cv2.warpAffine(patch, np.column_stack([turn, offset]),
                               (width, height))
        # The frame is a torus: what leaves on one side enters on the other.
        layer = np.roll(layer, whole.astype(int)[::-1], axis=(0, 1))
        image = background * (1 - layer[..., 3:]) + layer[..., :3]
        yield np.rint(image).clip(0, 255).astype(np.uint8)


def write_clip(job: tuple[str, int], out: Path, seed: int) -> str:
    """Write one video; returns its line of the annotation file."""
    split, index = job
    clip = draw_clip(seed, split, index)
    name = f'{split}/{index:06d}.mp4'
    # OpenCV allows mp4v far more bits than these clips need, so that the error
    # of compression is the same whatever moves.
    writer = cv2.VideoWriter(
        str(out / name), cv2.VideoWriter_fourcc(*'mp4v'), clip.fps,
        (clip.width, clip.height))
    if not writer.isOpened():
        raise RuntimeError(f'OpenCV cannot write {out / name} with mp4v')
    for image in render(clip):
        writer.write(image)
    writer.release()
    return f'{name} {clip.label}\n'


def make_motion(out: Path, num_train: int, num_val: int, seed: int,
                overwrite: bool = False) -> bool:
    """Write the set into a folder, unless it is there already.

    Returns:
        Whether anything was written.
    """
    for name, value, least in (('train', num_train, 1), ('val', num_val, 1),
                               ('seed', seed, 0)):
        if value < least:
            raise ValueError(f'{name} must be at least {least}, got {value}')
    wanted = dict(generator='make_motion.py', version=1, seed=seed,
                  train=num_train, val=num_val, complete=True)
    meta = out / 'meta.json'
    if meta.is_file():
        found = json.loads(meta.read_text())
        if found == wanted:
            return False
        if found.get('generator') != wanted['generator']:
            raise FileExistsError(f'{meta} was not written by this tool')
        if found['complete'] and not overwrite:
            raise FileExistsError(
                f'{out} holds another set ({meta}: {found}); choose another '
                'folder, or replace it with --overwrite')
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(
            f'{out} is not empty and was not made by this tool; choose a '
            'folder that is empty or does not exist')

    out.mkdir(parents=True, exist_ok=True)
    # Marks the folder as ours, so that an interrupted run can be repeated.
    meta.write_text(json.dumps({**wanted, 'complete': False}))
    sizes = dict(train=num_train, val=num_val)
    for split in SPLITS:
        shutil.rmtree(out / split, ignore_errors=True)
        (out / split).mkdir()
    jobs = [(split, i) for split in SPLITS for i in range(sizes[split])]
    with ProcessPoolExecutor(initializer=cv2.setNumThreads,
                             initargs=(1, )) as pool:
        lines = list(pool.map(partial(write_clip, out=out, seed=seed), jobs,
                              chunksize=16))
    (out / 'train.txt').write_text(''.join(lines[:num_train]))
    (out / 'val.txt').write_text(''.join(lines[num_train:]))
    (out / 'label_map.txt').write_text('\n'.join(CLASSES) + '\n')
    meta.write_text(json.dumps(wanted))
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('out', type=Path, help='folder to write the set to')
    parser.add_argument('--train', type=int, default=2000,
                        help='number of training clips (default: 2000)')
    parser.add_argument('--val', type=int, default=200,
                        help='number of validation clips (default: 200)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--overwrite', action='store_true',
                        help='replace another set of this tool in that folder')
    args = parser.parse_args()
    try:
        written = make_motion(args.out, args.train, args.val, args.seed,
                              args.overwrite)
    except (ValueError, OSError) as error:
        raise SystemExit(f'make_motion.py: {error}') from None
    print(f'{args.out}: {args.train} training and {args.val} validation clips '
          + ('written' if written else 'are there already'))


if __name__ == '__main__':
    main()
