# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Samplers of the windows and clips of untrimmed videos."""
from collections.abc import Iterator
from typing import Any

import numpy as np
from mmaction.registry import DATA_SAMPLERS
from mmengine.dist import get_dist_info, sync_random_seed
from torch.utils.data import Sampler

from ..utils.arguments import Count, Natural, check_arguments
from .feature_stream_dataset import FeatureStreamDataset


@DATA_SAMPLERS.register_module()
@check_arguments
class RandomOffsetSampler(Sampler):
    """Sampler of non-overlapping windows, in random order.

    In each epoch, each video gets a random offset. From there, windows follow
    without overlap (by default). For a dataset with ``windows='segments'``,
    all windows are used.

    All epochs have the same length, the mean over the possible offsets. A few
    windows are repeated or left out to reach it.

    Args:
        dataset: Dataset with ``windows='dense'`` or ``'segments'``.
        shuffle: Shuffle the windows. Offsets are random also without it.
        seed: Seed, equal on all ranks. Random by default.
        stride: Distance in steps between windows of a video. Defaults to the
            smallest distance without overlap. With a smaller stride, windows
            overlap, like in MiniROAD.
    """

    def __init__(self, dataset: FeatureStreamDataset, shuffle: bool = True,
                 seed: Natural | None = None,
                 stride: Count | None = None) -> None:
        if getattr(dataset, 'windows', None) not in ('dense', 'segments'):
            raise ValueError(
                "dataset must be a FeatureStreamDataset with windows='dense' "
                f"or 'segments', got {type(dataset).__name__} with "
                f"windows={getattr(dataset, 'windows', None)!r}")
        self.stride = dataset.stride if stride is None else stride
        self.dataset = dataset
        self.shuffle = shuffle
        self.rank, self.world_size = get_dist_info()
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = 0
        self.uses_all = dataset.windows == 'segments'
        mean = len(dataset)
        if not self.uses_all:
            self.videos = np.array([w['video'] for w in dataset.data_list])
            self.starts = np.array(
                [w['work_start'] for w in dataset.data_list])
            mean = max(1, round(len(dataset) / self.stride))
        self.num_samples = -(-mean // self.world_size)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng([self.seed, self.epoch])
        chosen = np.arange(len(self.dataset))
        if not self.uses_all:
            stride = self.stride
            offsets = rng.integers(stride, size=self.videos.max() + 1)
            chosen = np.flatnonzero(
                self.starts % stride == offsets[self.videos])
            if not len(chosen):
                chosen = rng.integers(len(self.dataset), size=1)
        if self.shuffle:
            chosen = rng.permutation(chosen)
        chosen = np.resize(chosen, self.num_samples * self.world_size)
        return iter(chosen[self.rank::self.world_size].tolist())


@DATA_SAMPLERS.register_module()
@check_arguments
class StatefulVideoSampler(Sampler):
    """Batch sampler that reads several videos in parallel, each in order.

    Row i of a batch has the clip that follows the clip in row i of the
    previous batch. When a video ends, the row continues with another video. A
    model that carries its state from batch to batch therefore learns from
    entire videos by truncated backpropagation through time. Set the sampler as
    the ``batch_sampler`` of a data loader::

        train_dataloader = dict(
            batch_size=4,
            sampler=dict(type='DefaultSampler', shuffle=True),
            batch_sampler=dict(type='StatefulVideoSampler'),
            dataset=dict(type='VideoStreamDataset', ...))

    In each epoch, the first clip of a video starts at a random step, which is
    less than the clip length (step 0 without ``shuffle``), and the other clips
    follow without gaps. The videos are distributed over the
    rows of all processes, so that all rows have about the same number of
    clips. Rows with fewer clips repeat their first clips at the end.

    Args:
        sampler: Sampler of single clips of a :class:`VideoStreamDataset` for
            training, such as ``DefaultSampler``; its ``shuffle``, ``seed`` and
            ``epoch`` are used.
        batch_size: Number of parallel videos in each process.
        drop_last: Ignored: all batches are complete.
    """

    def __init__(self, sampler: Any, batch_size: Count,
                 drop_last: bool = False) -> None:
        dataset = getattr(sampler, 'dataset', None)
        if not hasattr(dataset, 'clip_stride') or dataset.test_mode:
            raise ValueError(
                'sampler must be of a VideoStreamDataset for training, got '
                f'{type(sampler).__name__} of {type(dataset).__name__}')
        self.sampler = sampler
        self.batch_size = batch_size
        self.stride = dataset.clip_stride
        self.rank, self.world_size = get_dist_info()
        # The dataset has a clip for each possible start. For each video: the
        # index of its first clip, and the number of its clips.
        videos = np.array([clip['video'] for clip in dataset.data_list])
        _, self._first, self._starts = np.unique(
            videos, return_index=True, return_counts=True)
        clips = -(-self._starts // self.stride)
        self.num_batches = max(
            1, round(clips.sum() / (batch_size * self.world_size)))

    def __len__(self) -> int:
        """Number of batches of an epoch in this process."""
        return self.num_batches

    def __iter__(self) -> Iterator[list[int]]:
        shuffle = getattr(self.sampler, 'shuffle', True)
        rng = np.random.default_rng(
            [getattr(self.sampler, 'seed', None) or 0,
             getattr(self.sampler, 'epoch', 0)])
        order = np.arange(len(self._first))
        offsets = np.zeros(len(order), np.int64)
        if shuffle:
            order = rng.permutation(order)
            # Short videos keep at least one clip.
            offsets = rng.integers(np.minimum(self._starts, self.stride))
        # Each video goes to the row that has the fewest clips.
        rows: list[list[int]] = [
            [] for _ in range(self.batch_size * self.world_size)]
        for video in order:
            row = min(rows, key=len)
            row += range(self._first[video] + offsets[video],
                         self._first[video] + self._starts[video],
                         self.stride)
        full = [np.resize(row or rows[0], self.num_batches).tolist()
                for row in rows]
        mine = full[self.rank * self.batch_size:][:self.batch_size]
        for batch in zip(*mine):
            yield list(batch)
