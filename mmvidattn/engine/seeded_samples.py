# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Data loading in which a sample's seed depends on its position in a run.

``torchdata.stateful_dataloader`` restores the order of samples, but not the
random numbers of workers, on which augmentations depend.
"""
import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader

from ..datasets.checked_datasets import DatasetWrapper
from ..utils.random_state import seeded


class Place(NamedTuple):
    """Index of a sample in a dataset, and its seed."""
    index: Any
    entropy: list[int]


class SeededDataset(DatasetWrapper):
    """Dataset wrapper that seeds the sample of a :class:`Place`."""

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, Place):
            return self.dataset[place]
        with seeded(place.entropy):
            return self.dataset[place.index]


class SeededBatches:
    """Batch sampler that yields a :class:`Place` for each sample.

    The random numbers of a sample depend only on the epoch, the step, and the
    index among the samples of all processes in the step, and not on the worker
    that loads it. If the sampler distributes samples to processes in turn,
    like mmengine's ``DefaultSampler``, they do not depend on the number of
    processes either.

    Attributes:
        seed: Seed of all samples.
        epoch: Epoch of the next pass over the data. Each pass adds 1.
        start: Number of batches that the next pass skips. Each pass resets it
            to 0.
    """

    def __init__(self, batches: Any, seed: int, rank: int = 0,
                 num_ranks: int = 1) -> None:
        self.batches = batches
        self.seed, self.rank, self.num_ranks = seed, rank, num_ranks
        self.epoch = self.start = 0

    def __getattr__(self, name: str) -> Any:
        if name == 'batches':
            raise AttributeError(name)
        return getattr(self.batches, name)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[Place]]:
        epoch, start = self.epoch, self.start
        self.epoch, self.start = epoch + 1, 0
        # numpy accepts no negative seed.
        seed = self.seed % 2**63
        for number, batch in enumerate(
                islice(self.batches, start, None), start):
            # The constant 0 keeps the samples of earlier versions.
            yield [Place(index, [seed, 0, epoch, number,
                                 self.num_ranks * i + self.rank])
                   for i, index in enumerate(batch)]


def seed_samples(loader: DataLoader, *place: int) -> DataLoader:
    """Copy a loader of batches of a map-style dataset, with seeded samples.

    The copy does not draw from the random generators of the main process.
    ``place`` are the seed, rank and number of processes of its
    :class:`SeededBatches`.
    """
    names = inspect.signature(DataLoader).parameters.keys() - {
        # The batch sampler replaces these.
        'batch_size', 'shuffle', 'sampler', 'drop_last'}
    options = {name: getattr(loader, name) for name in names
               if hasattr(loader, name)}
    return DataLoader(**(options | dict(
        dataset=SeededDataset(loader.dataset),
        batch_sampler=SeededBatches(loader.batch_sampler, *place),
        generator=torch.Generator())))
