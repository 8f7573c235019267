# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write untrimmed feature streams whose labels need a memory.

    python tools/data/online/make_synthetic.py data/online_synthetic

The files have the layout of `FeatureStreamDataset`. A stream is noise with
actions. The class of an action is determined

* by its features (`now_0`, ...), or
* by a cue a few steps before the action (`recent_0`, ...), or
* by a cue hundreds of steps before the action (`long_0`, ...).

In the last two cases, the features of the action are the same for all classes
of the kind. A sign appears shortly before each action, so that actions can be
anticipated.
"""
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tools.data.generated_set import (
    check_sizes,
    options_of_set,
    run_generator,
    write_set,
)

KINDS = ('now', 'recent', 'long')
SPLITS = ('train', 'val')
FEATURE_RATE = 4


@dataclass(frozen=True)
class Recipe:
    """Settings of the streams.

    Args:
        steps: Mean length of a stream; lengths vary by up to a tenth. Defaults
            to 1200.
        classes: Number of classes of each kind. Defaults to 3.
        rgb_dims: Width of the first modality. Defaults to 32.
        flow_dims: Width of the second modality. Defaults to 16.
        noise: Standard deviation of the noise; patterns have a standard
            deviation of 1. Defaults to 0.5.
        cue_steps: Least and most steps between a cue and the actions that it
            decides. Defaults to (100, 400).
    """
    steps: int = 1200
    classes: int = 3
    rgb_dims: int = 32
    flow_dims: int = 16
    noise: float = 0.5
    cue_steps: tuple[int, int] = (100, 400)

    def __post_init__(self) -> None:
        for name, least in (('steps', 100), ('classes', 2), ('rgb_dims', 1),
                            ('flow_dims', 1), ('noise', 0)):
            if getattr(self, name) < least:
                raise ValueError(f'{name} must be at least {least}, got '
                                 f'{getattr(self, name)}')
        low, high = self.cue_steps
        if not 40 <= low <= high < self.steps:
            raise ValueError('cue_steps must be 40 <= least <= most < steps '
                             f'({self.steps}), got {low} and {high}')

    @property
    def names(self) -> list[str]:
        """Return the class names, with the background first."""
        return ['background'] + [
            f'{kind}_{i}' for kind in KINDS for i in range(self.classes)
        ]


def patterns(seed: int, recipe: Recipe) -> dict[str, np.ndarray]:
    """Return the patterns of the events, ``(count, rgb_dims + flow_dims)``.

    The patterns of `recent` and `long` actions and of the signs are the same
    for all classes.
    """
    rng = np.random.default_rng([seed, 2])
    width = recipe.rgb_dims + recipe.flow_dims

    def draw(count):
        return rng.normal(size=(count, width))

    return dict(
        now=draw(recipe.classes),
        recent=draw(1),
        long=draw(1),
        recent_cue=draw(recipe.classes),
        long_cue=draw(recipe.classes),
        sign=draw(len(KINDS)))


def draw_actions(rng: np.random.Generator, steps: int,
                 recipe: Recipe) -> Iterator[tuple[str, int, int, int]]:
    """Yield the actions of a stream: kind, class, start and end."""
    start = int(rng.integers(20, 40))
    while start + 24 < steps:
        kind = KINDS[rng.choice(3, p=(0.3, 0.3, 0.4))]
        end = start + int(rng.integers(8, 20))
        yield kind, int(rng.integers(recipe.classes)), start, end
        start = end + int(rng.integers(14, 40))


def make_stream(
        seed: int, split: str, index: int,
        recipe: Recipe) -> tuple[np.ndarray, np.ndarray, list[dict]]:
    """Draw a stream, which does not depend on other streams.

    Returns:
        Features ``(T, rgb_dims + flow_dims)`` float32, targets ``(T, K)``
        uint8, and all events.
    """
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    steps = int(recipe.steps * rng.uniform(0.9, 1.1))
    looks = patterns(seed, recipe)
    width = recipe.rgb_dims + recipe.flow_dims
    features = rng.normal(scale=recipe.noise, size=(steps, width))
    targets = np.zeros((steps, len(recipe.names)), np.uint8)
    events = []
    low, high = recipe.cue_steps
    # Class of the latest long cue, and its first step.
    cue, since = None, 0
    next_cue = int(rng.integers(5, 15))
    for kind, label, start, end in draw_actions(rng, steps, recipe):
        if next_cue is not None and next_cue < start - 20:
            cue = int(rng.integers(recipe.classes))
            # Long enough for memories that sample every fourth step.
            features[next_cue:next_cue + 8] += looks['long_cue'][cue]
            events.append(dict(event='long_cue', of=cue, start=next_cue,
                               end=next_cue + 8))
            since, next_cue = next_cue, None
        if kind == 'long' and (cue is None or not low <= start - since <= high
                               ):
            kind = 'now'
        if kind == 'long':
            label = cue
        elif kind == 'recent':
            when = start - int(rng.integers(6, 10))
            features[when:when + 2] += looks['recent_cue'][label]
            events.append(dict(event='recent_cue', of=label, start=when,
                               end=when + 2))
        look = looks[kind][label if kind == 'now' else 0]
        features[start:end] += look
        features[start - 4:start] += looks['sign'][KINDS.index(kind)]
        column = 1 + KINDS.index(kind) * recipe.classes + label
        targets[start:end, column] = 1
        events.append(dict(event=recipe.names[column], start=start, end=end))
        if next_cue is None and end - since > high:
            # Place the next cue in the gap after this action.
            next_cue = end + 3
    targets[:, 0] = targets.sum(axis=1) == 0
    return features.astype(np.float32), targets, events


def make_synthetic(out: Path, num_train: int, num_val: int, seed: int,
                   recipe: Recipe = Recipe(),
                   overwrite: bool = False) -> bool:
    """Write the set into a folder, unless it exists.

    Returns:
        True if the set was written.

    Raises:
        FileExistsError: If the folder has other files, or another set without
            `overwrite`.
    """
    check_sizes(num_train, num_val, seed, least_train=2)
    settings = dict(generator='make_synthetic.py', version=1, seed=seed,
                    train=num_train, val=num_val, feature_rate=FEATURE_RATE,
                    recipe=asdict(recipe))

    def write() -> None:
        for folder in 'rgb', 'flow', 'target_perframe':
            shutil.rmtree(out / folder, ignore_errors=True)
            (out / folder).mkdir()
        events = {}
        for split, count in zip(SPLITS, (num_train, num_val)):
            names = [f'{split}_{i:04d}' for i in range(count)]
            for i, name in enumerate(names):
                features, targets, events[name] = make_stream(
                    seed, split, i, recipe)
                rgb, flow = np.split(features, [recipe.rgb_dims], axis=1)
                for folder, array in (('rgb', rgb), ('flow', flow),
                                      ('target_perframe', targets)):
                    np.save(out / folder / f'{name}.npy', array)
            (out / f'{split}.txt').write_text('\n'.join(names) + '\n')
        (out / 'classes.txt').write_text('\n'.join(recipe.names) + '\n')
        (out / 'events.json').write_text(json.dumps(events))

    return write_set(out, settings, overwrite, write)


def main() -> None:
    parser = options_of_set(__doc__, 'streams', train=100, val=20)
    parser.add_argument('--steps', type=int, default=1200,
                        help='mean length of a stream (default: 1200)')
    parser.add_argument('--classes', type=int, default=3,
                        help='classes of each of the three kinds (default: 3)')
    parser.add_argument('--noise', type=float, default=0.5,
                        help='standard deviation of the noise (default: 0.5)')
    parser.add_argument('--cue-steps', type=int, nargs=2, default=(100, 400),
                        metavar=('LEAST', 'MOST'),
                        help='least and most steps from a cue to an action '
                        'that it decides (default: 100 400)')
    args = parser.parse_args()
    run_generator(args.out, lambda: make_synthetic(
        args.out, args.train, args.val, args.seed,
        Recipe(steps=args.steps, classes=args.classes, noise=args.noise,
               cue_steps=tuple(args.cue_steps)), args.overwrite))


if __name__ == '__main__':
    main()
