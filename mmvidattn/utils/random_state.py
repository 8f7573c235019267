# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Random generators of a process: Python, numpy and torch."""
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def get_random_state() -> dict[str, Any]:
    """Return the state of all generators of all devices, in plain types."""
    version, words, gauss = random.getstate()
    name, keys, *rest = np.random.get_state()
    state = dict(
        python=[version, torch.tensor(words), gauss],
        numpy=[name, torch.from_numpy(keys.astype(np.int64)), *rest],
        torch=torch.get_rng_state())
    # Reading the states would initialize CUDA in a process without it.
    if torch.cuda.is_initialized():
        state['cuda'] = [s.cpu() for s in torch.cuda.get_rng_state_all()]
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Restore a state of :func:`get_random_state`.

    Raises:
        ValueError: If the state has another number of devices.
    """
    version, words, gauss = state['python']
    random.setstate((version, tuple(words.tolist()), gauss))
    name, keys, *rest = state['numpy']
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and torch.cuda.is_available():
        num_devices = torch.cuda.device_count()
        if num_devices != len(state['cuda']):
            raise ValueError(
                f'the random state has {len(state["cuda"])} CUDA devices, '
                f'this process {num_devices}')
        torch.cuda.set_rng_state_all([s.cpu() for s in state['cuda']])


@contextmanager
def seeded(entropy: list[int]) -> Iterator[None]:
    """Seed the CPU's generators from ``entropy``, and restore them later."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    words = np.random.SeedSequence(entropy).generate_state(3).tolist()
    random.seed(words[0])
    np.random.seed(words[1])
    torch.default_generator.manual_seed(words[2])
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])
