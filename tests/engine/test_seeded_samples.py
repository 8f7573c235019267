# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
from toy_runs import Data

from mmvidattn.engine.seeded_samples import seed_samples
from mmvidattn.utils.random_state import get_random_state, set_random_state


def collate(items):
    return dict(inputs=torch.stack([item['inputs'] for item in items]))


def noise(size, *place, workers=0, **options):
    """Return the samples that a loader with seeds draws."""
    loader = DataLoader(Data(), size, num_workers=workers, collate_fn=collate,
                        **options)
    return torch.cat([
        batch['inputs'] for batch in seed_samples(loader, *place)])


def test_samples_depend_on_seed_and_rank_but_not_on_workers():
    assert torch.equal(noise(3, 5, 1, workers=2), noise(3, 5, 1))
    found = {noise(10, seed, rank, 2)[0, 0].item() for seed, rank in (
        (0, 0), (0, 1), (1, 0), (2, 0), (2**40, 0), (-1, 0))}
    assert len(found) == 6


def test_processes_draw_the_same_samples_as_one():
    full = noise(4, 0, sampler=range(8))
    for rank in range(2):
        assert torch.equal(full[rank::2], noise(
            2, 0, rank, 2, sampler=range(rank, 8, 2)))


def draw():
    return random.random(), np.random.rand(), torch.rand(3).tolist()


def test_loading_draws_nothing_from_the_main_process():
    before = get_random_state()
    drawn = draw()
    set_random_state(before)
    assert len(noise(3, 0, 0)) == 11
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
