# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a recognizer on the clips of ``motion.py`` and test it."""
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmaction.structures import ActionDataSample
from mmengine.model import BaseModel
from torch import Tensor

from . import motion
from .start import build, fit

SIZES = motion.SPLITS
# Scores of a run, in percent: what is compared, and what else is reported.
METRICS = dict(score='test', hard='hard split')
TEST_BATCH = 250
# The share of training clips, the easiest ones, that runs begin with, and the
# part of the updates after which all are in use.
EASIEST, RAMP = 0.2, 0.5


def prepare(folder: Path, sizes: dict[str, int]) -> dict[str, dict]:
    """Write the clips; returns what chance and an oracle score."""
    motion.prepare(folder, sizes)
    oracle = json.loads((folder / 'facts.json').read_text())['oracle']
    chance = 100 / motion.NUM_CLASSES
    return dict(
        chance=dict(score=chance, hard=chance),
        oracle=dict(score=oracle['test'], hard=oracle['hard']))


def _see(frames: np.ndarray, view: str, rng: np.random.Generator) -> Tensor:
    """Inputs ``(B, 1, 3, T, H, W)`` of clips ``(B, T, H, W, 3)``."""
    if view == 'middle':
        frames = np.repeat(frames[:, [motion.NUM_FRAMES // 2]],
                           motion.NUM_FRAMES, axis=1)
    elif view == 'shuffled':
        frames = np.stack([rng.permutation(clip) for clip in frames])
    return torch.as_tensor(np.array(frames)).permute(
        0, 4, 1, 2, 3)[:, None]


def _prepared(model: BaseModel, inputs: Tensor) -> Tensor:
    data = dict(inputs=[*inputs], data_samples=None)
    return model.data_preprocessor(data)['inputs']


def _share(progress: float) -> float:
    """The share of clips, the easiest ones, that are drawn from.

    Models that are shown all of them at once are at chance for a while, and
    leave it sooner or later by luck: seeds then differ by 40 points.
    """
    return min(1., EASIEST + (1 - EASIEST) * progress / RAMP)


@torch.no_grad()
def accuracy(model: BaseModel, clips: motion.Clips,
             view: str = 'all') -> float:
    """Top-1 in percent."""
    model.eval()
    rng = np.random.default_rng(0)
    right = []
    for first in range(0, len(clips.labels), TEST_BATCH):
        block = slice(first, first + TEST_BATCH)
        inputs = _prepared(model, _see(clips.frames[block], view, rng))
        logits = model(inputs, mode='tensor', stage='head')
        right.append(logits.argmax(1).numpy() == clips.labels[block])
    return 100 * float(np.concatenate(right).mean())


def batches(model: BaseModel, clips: motion.Clips, seed: int, steps: int,
            batch_size: int, view: str = 'all') -> Iterator[dict[str, Any]]:
    """What a model takes in each update, the easy clips first."""
    rng = np.random.default_rng(seed)
    # From the easiest clip to the hardest.
    ranks = np.argsort(clips.levels)
    for step in range(steps):
        chosen = ranks[rng.choice(
            round(_share(step / steps) * len(ranks)), batch_size,
            replace=len(ranks) < batch_size / EASIEST)]
        yield dict(
            inputs=_prepared(model, _see(clips.frames[chosen], view, rng)),
            data_samples=[ActionDataSample().set_gt_label(int(label))
                          for label in clips.labels[chosen]])


def train(config: dict, reference: dict | None, folder: Path, seed: int,
          rate: float, steps: int, batch_size: int,
          view: str = 'all') -> dict[str, float]:
    """A run: train, and test on all splits.

    Args:
        config: Of the row.
        reference: Config whose initial weights it takes where they fit.
        folder: Where :func:`prepare` wrote the clips.
        seed: Of the initial weights and the order of clips.
        rate: Learning rate.
        steps: Updates.
        batch_size: Clips an update.
        view: Which frames it sees.

    Returns:
        ``val``, ``score`` and ``hard``: top-1 in percent; ``loss``: that of
        the last tenth of the updates.
    """
    model = build(config, reference, seed)
    clips = motion.read(folder, 'train')
    loss = fit(model, config,
               batches(model, clips, seed, steps, batch_size, view), rate,
               steps)
    found = {split: accuracy(model, motion.read(folder, split), view)
             for split in ('val', 'test', 'hard')}
    return dict(score=found['test'], hard=found['hard'],
                val=found['val'], loss=loss)
