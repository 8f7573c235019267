# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Task: train a recognizer on the clips of ``motion.py`` and test it."""
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmaction.structures import ActionDataSample
from mmengine.model import BaseModel
from torch import Tensor

from tools.studies.study import Training

from . import motion
from .start import train_model

SIZES = motion.SPLITS
# Headings of the reported figures, in percent; claims compare 'score'.
METRICS = dict(score='test', hard='hard split')
TEST_BATCH = 250
# Runs start with this share of the clips, the easiest ones, and use all clips
# after this share of the updates.
EASIEST, RAMP = 0.2, 0.5


def prepare(folder: Path, sizes: dict[str, int]) -> dict[str, dict]:
    """Write the clips, and return the scores of chance and an oracle."""
    oracle = motion.prepare(folder, sizes)
    chance = 100 / motion.NUM_CLASSES
    return dict(
        chance=dict(score=chance, hard=chance),
        oracle=dict(score=oracle['test'], hard=oracle['hard']))


def _see(frames: np.ndarray, view: str, rng: np.random.Generator) -> Tensor:
    """Turn clips ``(B, T, H, W, 3)`` to inputs ``(B, 1, 3, T, H, W)``."""
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
    """Return the share of clips to draw from, the easiest ones first.

    Models that are trained on all clips from the start stay at chance for a
    random time, so that seeds differ by 40 points.
    """
    return min(1., EASIEST + (1 - EASIEST) * progress / RAMP)


@torch.no_grad()
def accuracy(model: BaseModel, clips: motion.Clips,
             view: str = 'all') -> float:
    """Return top-1 in percent."""
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
    """Yield preprocessed batches, with easy clips first."""
    rng = np.random.default_rng(seed)
    # From the easiest to the hardest clip.
    ranks = np.argsort(clips.levels)
    for step in range(steps):
        chosen = ranks[rng.choice(
            round(_share(step / steps) * len(ranks)), batch_size,
            replace=len(ranks) < batch_size / EASIEST)]
        yield dict(
            inputs=_prepared(model, _see(clips.frames[chosen], view, rng)),
            data_samples=[ActionDataSample().set_gt_label(int(label))
                          for label in clips.labels[chosen]])


def _batches(model: BaseModel, job: Training) -> Iterator[dict[str, Any]]:
    return batches(model, motion.read(job.folder, 'train'), job.seed,
                   job.steps, job.batch_size, job.view)


def train(job: Training) -> dict[str, float]:
    """Train a model, and test it on all splits.

    Returns:
        Top-1 in percent: ``val``, ``score`` (test) and ``hard``; and the
        ``loss`` of the last tenth of the updates.
    """
    model, loss = train_model(job, _batches)
    found = {split: accuracy(model, motion.read(job.folder, split), job.view)
             for split in ('val', 'test', 'hard')}
    return dict(score=found['test'], hard=found['hard'],
                val=found['val'], loss=loss)
