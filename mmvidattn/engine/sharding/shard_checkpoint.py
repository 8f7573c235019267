# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Save a checkpoint to a folder in which each process writes its part."""
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mmengine.dist import broadcast_object_list
from torch import Tensor

from ...utils.shard_folder import SUFFIX, storage
from .shards import is_shard
from .whole_checkpoint import Owners, replaced_states


def new_folder(out_dir: str, filename: str) -> Path:
    """Return a new folder for the tensors of a checkpoint.

    All processes must call this function.

    Args:
        out_dir: Folder of the checkpoint.
        filename: Name of the checkpoint, or of its unfinished file ``*.part``.
            The name of the folder begins with it.

    Raises:
        ValueError: If ``out_dir`` is not a local folder.
    """
    if '://' in out_dir:
        raise ValueError('sharded_checkpoints needs a local folder, got '
                         f'{out_dir}')
    token = [secrets.token_hex(4)]
    broadcast_object_list(token)
    name = filename.removesuffix('.part')
    return Path(out_dir, f'{name}.{token[0]}{SUFFIX}')


def shard_states(owners: Owners, folder: Path) -> AbstractContextManager[None]:
    """Write this process's shards to a folder.

    All processes must call this function.

    Returns:
        A context in which ``state_dict()`` of each model and optimizer in
        ``owners`` returns only the tensors that are not sharded.

    Raises:
        OSError: If a process cannot write its part.
    """
    shards: dict[str, Tensor] = {}
    states = {name: _take_shards(owner.state_dict(), name, shards)
              for name, owner in owners.items()}
    checkpoint = storage()
    try:
        checkpoint.save(
            shards, storage_writer=checkpoint.HuggingFaceStorageWriter(
                str(folder), save_distributed=True))
    except checkpoint.api.CheckpointException as error:
        raise OSError(f'cannot write {folder}: {error}') from error
    return replaced_states(states, owners)


def _take_shards(state: Any, name: str, shards: dict[str, Tensor]) -> Any:
    """Move all shards of nested dicts to ``shards``; return all else."""
    if not isinstance(state, Mapping):
        return state
    rest = type(state)()
    for key, value in state.items():
        # Write optimizer/0/exp_avg for optimizer/state/0/exp_avg.
        path = name if name == 'optimizer' and key == 'state' else (
            f'{name}/{key}')
        if is_shard(value):
            shards[path] = value.detach()
        else:
            rest[key] = _take_shards(value, path, shards)
    return rest
