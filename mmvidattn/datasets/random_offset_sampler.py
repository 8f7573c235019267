# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sampler of non-overlapping windows with a random offset."""
from collections.abc import Iterator

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
        """Number of windows on this rank."""
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        """Iterate over indices of windows."""
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
