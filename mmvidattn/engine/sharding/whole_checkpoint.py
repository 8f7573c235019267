# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checkpoints of one file, from a model that several processes share."""
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn

from .shards import gather, is_shard


@contextmanager
def whole_states(
        owners: Mapping[str, nn.Module | torch.optim.Optimizer]
) -> Iterator[None]:
    """Let ``state_dict()`` of models and optimizers return complete tensors.

    All processes must enter it. Within it, only the first process may call
    ``state_dict``.
    """
    with replaced_states({
            name: gather(owner.state_dict(), is_main_process())
            for name, owner in owners.items()}, owners):
        yield


@contextmanager
def replaced_states(
        states: Mapping[str, Any],
        owners: Mapping[str, nn.Module | torch.optim.Optimizer]
) -> Iterator[None]:
    """Let ``state_dict()`` of each owner return the given state."""
    with ExitStack() as hooks:
        for name, owner in owners.items():
            hooks.enter_context(owner.register_state_dict_post_hook(
                partial(_replace, states[name])))
        yield


def _replace(state: Mapping[str, Any], owner: Any,
             state_dict: dict[str, Any], *args: Any) -> None:
    """Replace the content of a ``state_dict``."""
    state_dict.clear()
    state_dict.update(state)


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
