# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Task: train an online detector on streams of ``streams.py`` and test it."""
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmaction.registry import DATA_SAMPLERS, DATASETS
from mmengine.dataset import pseudo_collate
from mmengine.model import BaseModel

from mmvidattn.datasets import FeatureStreamDataset
from mmvidattn.datasets.feature_streams import FeatureStreams
from mmvidattn.evaluation.per_frame_map import read_scores
from mmvidattn.online.causal_network import CausalNetwork
from tools.studies.study import Training

from . import streams
from .start import train_model

SIZES = streams.SPLITS
# Headings of the reported figures, in percent; claims compare 'score'.
METRICS = dict(
    score='test',
    now='cues',
    **{f'bin_{name}': f'{low}-{high} steps'
       for name, (low, high) in streams.BINS.items()},
    anticipation='anticipation')
# Range of the number of steps from a cue to its action, by figure.
DISTANCES = {f'bin_{name}': bounds for name, bounds in streams.BINS.items()}
# Steps between two tested windows; no action is shorter.
TEST_STRIDE = 8


def prepare(folder: Path, sizes: dict[str, int]) -> dict[str, dict]:
    """Write the streams, and return the scores of chance and an oracle."""
    limits = streams.prepare(folder, sizes)
    # Chance and oracle both know the times of future actions.
    return {name: {**found, 'anticipation': found['score']}
            for name, found in limits.items()}


class _StreamsInMemory(FeatureStreams):
    """Streams in one array, so that one lookup reads windows of many."""

    def __init__(self, opened: FeatureStreams) -> None:
        vars(self).update(vars(opened))
        self._first = np.cumsum([0, *self.lengths[:-1]])
        self._rows = {
            key: np.concatenate([
                self.open(video, key)[:length]
                for video, length in enumerate(self.lengths)
            ]).astype(np.float32)
            for key in self.folders
        }

    def read(self, key: str, videos: np.ndarray | int,
             steps: np.ndarray) -> np.ndarray:
        return self._rows[key][self._first[videos] + steps]


def _dataset(config: dict, loader: str, folder: Path,
             split: str) -> FeatureStreamDataset:
    """Build the dataset of a config's loader for these streams."""
    data = DATASETS.build({
        **config[loader]['dataset'],
        'ann_file': f'{split}.txt',
        'data_root': str(folder),
        'metainfo': dict(classes=str(folder / 'classes.txt'))})
    data.streams = _StreamsInMemory(data.streams)
    return data


def _batches(model: BaseModel, job: Training) -> Iterator[dict[str, Any]]:
    """Yield batches of windows, the same for all lengths of memories."""
    config, batch_size = job.config, job.batch_size
    data = _dataset(config, 'train_dataloader', job.folder, 'train')
    sampler = DATA_SAMPLERS.build(
        config['train_dataloader']['sampler'],
        default_args=dict(dataset=data, seed=job.seed))
    np.random.seed(job.seed)
    waiting: list[int] = []
    for epoch in count():
        sampler.set_epoch(epoch)
        waiting += sampler
        while len(waiting) >= batch_size:
            yield model.data_preprocessor(
                pseudo_collate([data[i] for i in waiting[:batch_size]]),
                training=True)
            del waiting[:batch_size]


def _predict(model: BaseModel, video: dict[str, Any]) -> dict[str, Any]:
    """Score every eighth window of a video; neighbors have similar scores.

    A causal network reads the frames in order, and scores all of them.

    Returns:
        Data sample; only its scored steps are valid.
    """
    inputs, sample = dict(video['inputs']), video['data_samples']
    stride = 1 if isinstance(model.backbone, CausalNetwork) else TEST_STRIDE
    for name in 'long_indices', 'work_indices', 'padding_mask':
        inputs[name] = inputs[name][::stride]
    # All steps of the first window, and the last step of each further window.
    work = inputs['work_indices']
    steps = torch.cat([work[0, :-1], work[:, -1]])
    sample.set_metainfo(dict(
        score_steps=steps.tolist(), score_rows=steps.tolist(),
        anticipation_steps=sample.anticipation_steps[::stride]))
    sample, = model.test_step(pseudo_collate(
        [dict(inputs=inputs, data_samples=sample)]))
    scores = torch.zeros(sample.gt_action.shape)
    scores[steps] = sample.pred_action
    sample.set_data(dict(pred_action=scores))
    return sample.to_dict()


@torch.no_grad()
def _test(model: BaseModel, config: dict, folder: Path, split: str,
          bins: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    """Return the figures of a split."""
    model.eval()
    data = _dataset(config, 'test_dataloader', folder, split)
    # Scores, targets and distances: detection first, then each anticipation
    # token.
    parts: list[list[tuple[np.ndarray, ...]]] = []
    for i in range(len(data)):
        distances = np.load(folder / f'distance/{split}_{i:03d}.npy')
        parts.append([(scores, targets, distances[steps])
                      for steps, scores, targets in read_scores(
                          _predict(model, data[i]))])
    found, *ahead = (streams.figures(*map(np.concatenate, zip(*videos)), bins)
                     for videos in zip(*parts))
    if ahead:
        found['anticipation'] = float(
            np.mean([token['score'] for token in ahead]))
    return found


def train(job: Training) -> dict[str, float]:
    """Train a model, and test it on every eighth step of the streams.

    Returns:
        Figures of ``METRICS``, with ``anticipation`` if the model
        anticipates; ``val``, the score on the validation split; and the
        ``loss`` of the last tenth of the updates.
    """
    return train_and_keep(job)[0]


def train_and_keep(
    job: Training, bins: Mapping[str, tuple[int, int]] = streams.BINS
) -> tuple[dict[str, float], BaseModel]:
    """Return the figures of :func:`train` and the model.

    Args:
        job: Config, data and settings of the training.
        bins: Bounds of the distances by name. Defaults to
            ``streams.BINS``.
    """
    if job.view != 'all':
        raise ValueError(f"view must be 'all' for streams, got {job.view!r}")
    model, loss = train_model(job, _batches)
    return dict(
        **_test(model, job.config, job.folder, 'test', bins),
        val=_test(model, job.config, job.folder, 'val', bins)['score'],
        loss=loss), model
