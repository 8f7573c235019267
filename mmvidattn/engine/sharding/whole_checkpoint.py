# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checkpoints of one file, from a model that several processes share."""
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn

from .shards import gather, is_shard


@contextmanager
def whole_states(
        owners: Sequence[nn.Module | torch.optim.Optimizer]) -> Iterator[None]:
    """Let ``state_dict()`` of models and optimizers return complete tensors.

    All processes must enter it. Within it, only the first process may call
    ``state_dict``.
    """
    states = [gather(owner.state_dict(), is_main_process())
              for owner in owners]
    for owner, state in zip(owners, states):
        owner.state_dict = lambda *args, state=state, **kwargs: state
    try:
        yield
    finally:
        for owner in owners:
            del owner.state_dict


def whole_gradients(model: nn.Module) -> dict[str, Tensor]:
    """Gather the gradients of a sharded model in the first process.

    All processes must call it.

    Returns:
        Gradients by name of the parameter, on the CPU; empty if the model is
        not sharded, and in all other processes.
    """
    found = {name: p.grad for name, p in model.named_parameters()
             if is_shard(p.grad)}
    whole = gather(found, is_main_process())
    return whole if is_main_process() else {}
