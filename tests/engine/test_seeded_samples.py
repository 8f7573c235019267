# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
from toy_runs import Data

from mmvidattn.engine.seeded_samples import seed_samples
from mmvidattn.utils.random_state import get_random_state, set_random_state


def collate(items):
    return dict(inputs=torch.stack([item['inputs'] for item in items]))


def collated(loader):
    loader.collate_fn = collate
    return list(loader)


@pytest.mark.parametrize('workers', [1, 2])
def test_samples_do_not_depend_on_workers(workers):
    results = []
    for number in 0, workers:
        loader = seed_samples(
            DataLoader(Data(), batch_size=3, num_workers=number), 5, 1)
        results.append(torch.cat([b['inputs'] for b in collated(loader)]))
    assert torch.equal(*results)


def test_ranks_and_seeds_draw_different_numbers():
    results = []
    for seed, rank in ((0, 0), (0, 1), (1, 0), (2, 0), (2**40, 0), (-1, 0)):
        loader = seed_samples(
            DataLoader(Data(), batch_size=10), seed, rank, 2)
        results.append(collated(loader)[0]['inputs'][0, 0].item())
    assert len(set(results)) == 6


def test_processes_draw_the_same_samples_as_one():
    def noise(size, *place):
        loader = DataLoader(Data(), sampler=range(place[0] if place else 0, 8,
                                                  place[1] if place else 1),
                            batch_size=size)
        return torch.cat([batch['inputs'] for batch in collated(
            seed_samples(loader, 0, *place))])

    full, parts = noise(4), [noise(2, rank, 2) for rank in range(2)]
    for rank, part in enumerate(parts):
        assert torch.equal(part, full[rank::2])


def draw():
    return random.random(), np.random.rand(), torch.rand(3).tolist()


def test_loading_draws_nothing_from_the_main_process():
    loader = seed_samples(DataLoader(Data(), batch_size=3), 0, 0)
    before = get_random_state()
    drawn = draw()
    set_random_state(before)
    assert len(collated(loader)) == 4
    assert draw() == drawn


def test_copies_all_options_of_the_loader():
    batches = BatchSampler(SequentialSampler(range(11)), 4, True)
    loader = DataLoader(
        Data(), batch_sampler=batches, collate_fn=collate, num_workers=1,
        persistent_workers=True, prefetch_factor=3, timeout=7,
        worker_init_fn=print, multiprocessing_context='fork')
    other = seed_samples(loader, 0)
    for name in ('collate_fn', 'num_workers', 'persistent_workers',
                 'prefetch_factor', 'timeout', 'worker_init_fn',
                 'multiprocessing_context', 'pin_memory'):
        assert getattr(other, name) == getattr(loader, name), name
    assert [len(batch) for batch in other.batch_sampler] == [4, 4]
