# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Save a model that several processes share as one checkpoint file."""
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn

from .shards import gather, is_shard

Owners = Mapping[str, nn.Module | torch.optim.Optimizer]


def whole_states(owners: Owners) -> AbstractContextManager[None]:
    """Return a context in which ``state_dict()`` returns complete tensors.

    All processes must call this function. Within the context, only the first
    process may call ``state_dict()`` of a model or an optimizer in ``owners``.
    """
    return replaced_states({
        name: gather(owner.state_dict(), is_main_process())
        for name, owner in owners.items()}, owners)


@contextmanager
def replaced_states(states: Mapping[str, Any],
                    owners: Owners) -> Iterator[None]:
    """Let ``state_dict()`` of each model or optimizer return a given state."""
    with ExitStack() as hooks:
        for name, owner in owners.items():
            hooks.enter_context(owner.register_state_dict_post_hook(
                partial(_replace, states[name])))
        yield


def _replace(state: Mapping[str, Any], owner: Any,
             state_dict: dict[str, Any], *args: Any) -> None:
    state_dict.clear()
    state_dict.update(state)


def whole_gradients(model: nn.Module) -> dict[str, Tensor]:
    """Gather the gradients of a sharded model in the first process.

    All processes must call this function.

    Returns:
        Gradients by name of the parameter, on the CPU; empty if the model is
        not sharded, and in all other processes.
    """
    found = {name: p.grad for name, p in model.named_parameters()
             if is_shard(p.grad)}
    whole = gather(found, is_main_process())
    return whole if is_main_process() else {}
