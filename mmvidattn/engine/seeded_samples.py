# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Samples whose randomness depends on their place in the run alone."""
import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from ..utils.random_state import seeded


class Place(NamedTuple):
    """An index into a dataset, and what its randomness comes from."""
    index: Any
    entropy: list[int]


class SeededDataset(Dataset):
    """A dataset that takes a :class:`Place`; else as the one it wraps."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':
            # Not there yet while it is unpickled in a worker.
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, Place):
            return self.dataset[place]
        with seeded(place.entropy):
            return self.dataset[place.index]


class SeededBatches:
    """A batch sampler that gives each sample its :class:`Place`.

    Processes that share the samples of a step in turn, as those of mmengine's
    ``DefaultSampler`` do, draw for each what a single one would.

    Attributes:
        seed: What the randomness of all samples comes from.
        epoch: Of the next pass over the data; counts up with each pass.
        start: How many batches the next pass leaves out; then 0 again.
    """

    def __init__(self, batches: Any, seed: int, rank: int,
                 num_ranks: int) -> None:
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
        # A seed of numpy has no sign.
        seed = self.seed % 2**63
        for number, batch in enumerate(
                islice(self.batches, start, None), start):
            # The 0 stands for what earlier versions had there.
            yield [Place(index, [seed, 0, epoch, number,
                                 self.num_ranks * i + self.rank])
                   for i, index in enumerate(batch)]


class LazyLoader(DataLoader):
    """A ``DataLoader`` that starts its workers with the first batch.

    mmengine's ``IterBasedTrainLoop`` takes its iterator when it is built,
    before it knows where the run goes on.
    """

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()


def loader_like(loader: DataLoader, **changes: Any) -> LazyLoader:
    """Build a loader of batches with the options of another.

    Args:
        loader: A loader that has a batch sampler.
        changes: Options that differ.
    """
    names = inspect.signature(DataLoader).parameters.keys() - {
        # The batch sampler has them.
        'batch_size', 'shuffle', 'sampler', 'drop_last'}
    options = {name: getattr(loader, name) for name in names
               if hasattr(loader, name)}
    return LazyLoader(**(options | changes))


def seed_samples(loader: DataLoader, seed: int, rank: int = 0,
                 num_ranks: int = 1) -> LazyLoader:
    """Let the randomness of a sample depend on its place in the run.

    That is: on the seed, the epoch, the step and the place among the samples
    of all processes in it; not on the worker that loads it and on what that
    worker did before, so that a run can go on in the middle of an epoch, and
    with another number of processes. The loader draws nothing from the
    generators of the main process.

    Args:
        loader: A loader of batches of a map-style dataset.
        seed: The seed.
        rank: Rank of this process.
        num_ranks: Number of processes.

    Returns:
        A loader of the same batches, whose ``batch_sampler`` is a
        :class:`SeededBatches`.
    """
    return loader_like(
        loader,
        dataset=SeededDataset(loader.dataset),
        batch_sampler=SeededBatches(
            loader.batch_sampler, seed, rank, num_ranks),
        generator=torch.Generator())
