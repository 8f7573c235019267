# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Windows that share nothing, from another place each epoch."""
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
    """Shuffled windows of each video, cut from a random offset on.

    In each epoch and for each video an offset is drawn, and the video is cut
    from there into windows that share no step, unless ``stride`` says
    otherwise. Windows of segments are all taken.

    All epochs are of one length: that of the mean, to which a few windows are
    repeated or left out.

    Args:
        dataset: The windows.
        shuffle: Whether to shuffle them. Offsets are drawn anyway.
        seed: Seed, the same on all ranks. Drawn if it is None.
        stride: Steps from one window of a video to the next. Defaults to
            that of windows that share no step; fewer let them overlap, as
            MiniROAD's do.
    """

    def __init__(self,
                 dataset: FeatureStreamDataset,
                 shuffle: bool = True,
                 seed: Natural | None = None,
                 stride: Count | None = None) -> None:
        if getattr(dataset, 'windows', None) not in ('dense', 'segments'):
            raise ValueError(
                "dataset must be a FeatureStreamDataset of windows='dense' or "
                f"'segments', got {type(dataset).__name__} of "
                f"{getattr(dataset, 'windows', 'none')!r}")
        self.stride = dataset.stride if stride is None else stride
        self.dataset = dataset
        self.shuffle = shuffle
        self.rank, self.world_size = get_dist_info()
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = 0
        self.whole = dataset.windows == 'segments'
        mean = len(dataset)
        if not self.whole:
            self.videos = np.array([w['video'] for w in dataset.data_list])
            self.starts = np.array(
                [w['work_start'] for w in dataset.data_list])
            mean = max(1, round(len(dataset) / self.stride))
        self.num_samples = -(-mean // self.world_size)

    def __len__(self) -> int:
        """Windows of this rank."""
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Which epoch comes next."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        """Numbers of windows."""
        rng = np.random.default_rng([self.seed, self.epoch])
        chosen = np.arange(len(self.dataset))
        if not self.whole:
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
