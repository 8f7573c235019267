# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tensors that several processes share (DTensors): cut, read, gather."""
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

# Accepted excess of the largest shard over the n-th part of a tensor.
MAX_EXCESS = 0.05


def is_shard(value: Any) -> bool:
    """Return True if a value is a tensor that processes share."""
    return torch.is_tensor(value) and hasattr(value, 'device_mesh')


def local(value: Tensor) -> Tensor:
    """Return this process's part of a tensor."""
    return value.to_local() if is_shard(value) else value


def cut_axis(shape: torch.Size, num_processes: int) -> int:
    """Return the axis along which a tensor is divided among processes.

    Prefer the first axis, because it needs no copies in communication. If the
    first axis would give one process over 5 % more than an equal part, return
    the longest axis that divides evenly. For example, a position table
    [1, N, D] is divided along N or D; otherwise, the first process would hold
    all of it.
    """
    first = shape[0] if shape else 1
    largest = -(-first // num_processes) * num_processes
    if largest <= (1 + MAX_EXCESS) * first:
        return 0
    even = [axis for axis, size in enumerate(shape)
            if size and size % num_processes == 0]
    return max(even, key=lambda axis: shape[axis], default=0)


def cut_as(value: Tensor, like: Tensor) -> Tensor:
    """Return this process's part of a complete tensor, without communication.

    Args:
        value: Complete tensor, equal in all processes.
        like: Sharded tensor with the wanted division. If it is not sharded or
            has another shape, ``value`` is returned unchanged.
    """
    if not is_shard(like) or is_shard(value) or value.shape != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor
    return distribute_tensor(
        value.to(like.device), like.device_mesh, like.placements,
        src_data_rank=None)


def gather(value: Any, keep: bool) -> Any:
    """Gather all shards in nested dicts and lists, on the CPU.

    All processes must call it. They assemble one tensor at a time.

    Args:
        value: Dicts, lists and tuples with tensors. Other values, and tensors
            that are not shared, are returned unchanged.
        keep: Return the gathered tensors; otherwise, None takes their place.
    """
    if is_shard(value):
        whole = value.detach().full_tensor()
        return whole.cpu() if keep else None
    if isinstance(value, Mapping):
        items = {key: gather(x, keep) for key, x in value.items()}
        # state_dict() returns an OrderedDict with metadata.
        return type(value)(items)
    if isinstance(value, (list, tuple)):
        return type(value)(gather(x, keep) for x in value)
    return value


def cut_on_load(model: nn.Module) -> None:
    """Let ``load_state_dict`` of a sharded model accept complete tensors."""
    for module in model.modules():
        if any(map(is_shard, module.parameters(recurse=False))):
            module._register_load_state_dict_pre_hook(
                _cut_tensors, with_module=True)


def _cut_tensors(module: nn.Module, state_dict: dict[str, Tensor],
                 prefix: str, *args: Any) -> None:
    for name, parameter in module.named_parameters(recurse=False):
        value = state_dict.get(prefix + name)
        if torch.is_tensor(value):
            state_dict[prefix + name] = cut_as(value, parameter)


def cut_optimizer_on_load(optimizer: torch.optim.Optimizer) -> None:
    """Let ``load_state_dict`` of an optimizer accept complete tensors."""
    optimizer.register_load_state_dict_pre_hook(_cut_state)


def _cut_state(optimizer: torch.optim.Optimizer,
               state_dict: dict[str, Any]) -> dict[str, Any]:
    parameters = [p for group in optimizer.param_groups
                  for p in group['params']]
    numbers = [i for group in state_dict['param_groups']
               for i in group['params']]
    state = dict(state_dict['state'])
    for number, parameter in zip(numbers, parameters):
        if number in state:
            state[number] = {
                key: cut_as(x, parameter) if torch.is_tensor(x) else x
                for key, x in state[number].items()}
    return dict(state_dict, state=state)


def shared_tree(model: nn.Module) -> nn.Module:
    """Return plain modules with the parameters and buffers of a sharded model.

    ``copy.deepcopy`` fails for a sharded model, and works for the result.
    Parameters and buffers keep their names, and are the same objects.
    """
    tree = nn.Module()
    for name, parameter in model.named_parameters(recurse=False):
        tree.register_parameter(name, parameter)
    for name, buffer in model.named_buffers(recurse=False):
        tree.register_buffer(
            name, buffer,
            persistent=name not in model._non_persistent_buffers_set)
    for name, child in model.named_children():
        tree.add_module(name, shared_tree(child))
    return tree
