# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Random schedules of several streams for causal networks and layers."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

State = dict[str, Tensor]


@dataclass
class Causal:
    """Causal network or layer as functions of frames [B, T, *].

    Attributes:
        forward: Map frames, state and elapsed times [B, T] to the results
            [B, T, *] and the new state.
        initial_state: Return the state of B streams.
        decay_state: Map a state and durations [B] to the state after dropped
            frames. None if dropped frames have no effect.
    """
    forward: Callable[[Tensor, State, Tensor], tuple[Tensor, State]]
    initial_state: Callable[[int], State]
    decay_state: Callable[[State, Tensor], State] | None = None


def run_schedule(network: Causal, x: Tensor, elapsed: Tensor,
                 resets: list[int], seed: int = 0) -> Tensor:
    """Process streams in random batches, parts and orders.

    Streams join and leave the batch in each call, and have different ages.
    In front of some frames, a part of the elapsed time belongs to dropped
    frames.

    Args:
        network: Network or layer.
        x: Frames of B streams, [B, T, *].
        elapsed: Time since the previous frame, [B, T].
        resets: Frame of each stream before which it starts anew.
        seed: Seed of the schedule.

    Returns:
        Results [B, T, *].
    """
    rng = np.random.default_rng(seed)
    B, T = x.shape[:2]
    states = [network.initial_state(1) for _ in range(B)]
    ages, parts = [0] * B, [[] for _ in range(B)]
    while unfinished := [i for i in range(B) if ages[i] < T]:
        some = rng.permutation(unfinished)[:rng.integers(1, B + 1)]
        ends = [resets[i] if ages[i] < resets[i] else T for i in some]
        length = min(int(rng.choice([1, 1, 1, 2, 40])),
                     *(end - ages[i] for i, end in zip(some, ends)))
        frames, times = (
            torch.stack([a[i, ages[i]:ages[i] + length] for i in some])
            for a in (x, elapsed))
        state = {name: torch.cat([states[i][name] for i in some])
                 for name in states[0]}
        if network.decay_state is not None and rng.random() < .3:
            dropped = times[:, 0] * torch.from_numpy(
                rng.choice([0., .4, 1.], len(some))).to(times)
            state = network.decay_state(state, dropped)
            times = torch.cat(
                [(times[:, 0] - dropped)[:, None], times[:, 1:]], dim=1)
        y, state = network.forward(frames, state, times)
        for row, i in enumerate(some):
            parts[i].append(y[row])
            ages[i] += length
            states[i] = network.initial_state(1) if ages[i] == resets[i] \
                else {name: a[row:row + 1] for name, a in state.items()}
    return torch.stack([torch.cat(part) for part in parts])


def whole_streams(reference: Callable[[Tensor, Tensor], Tensor], x: Tensor,
                  elapsed: Tensor, resets: list[int]) -> Tensor:
    """Return a reference for the results of :func:`run_schedule`.

    Args:
        reference: Function of frames [1, T, *] and elapsed times [1, T] that
            processes a whole stream.
        x: Frames, [B, T, *].
        elapsed: Times, [B, T].
        resets: Frame of each stream before which it starts anew.
    """
    return torch.cat([
        torch.cat([reference(x[i:i + 1, part], elapsed[i:i + 1, part])
                   for part in (slice(reset), slice(reset, None))], dim=1)
        for i, reset in enumerate(resets)])
