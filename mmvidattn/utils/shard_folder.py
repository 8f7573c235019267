# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checkpoints whose tensors several processes wrote to a folder.

The ``.pth`` file of such a checkpoint names the folder in ``meta['shards']``.
The folder has ``meta['num_shards']`` safetensors files, one for each
process, with the tensors

- ``model/NAME`` and ``ema/NAME``: parameters of the model, and their averages;
- ``optimizer/NUMBER/NAME``: state of the optimizer for a parameter.
"""
import math
import shutil
import warnings
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

from torch import Tensor, empty

KEY = 'shards'
SUFFIX = '.shards'


def storage() -> Any:
    """Import torch's distributed checkpoints.

    Raises:
        ImportError: If this torch cannot write them as safetensors.
    """
    import torch
    from torch.distributed import checkpoint
    if not hasattr(checkpoint, 'HuggingFaceStorageWriter'):
        raise ImportError('sharded checkpoints need a torch with torch.'
                          'distributed.checkpoint.HuggingFaceStorageWriter '
                          f'(tested with 2.13), got {torch.__version__}')
    return checkpoint


def find_shards(checkpoint: Any, path: str | Path) -> Path | None:
    """Return the folder of a checkpoint's tensors, or None if it has none.

    Args:
        checkpoint: Contents of the file.
        path: The file.

    Raises:
        ValueError: If the folder or a file is missing, or its name is a path.
    """
    meta = checkpoint.get('meta') if isinstance(checkpoint, Mapping) else None
    name = meta.get(KEY) if isinstance(meta, Mapping) else None
    if name is None:
        return None
    if not isinstance(name, str) or Path(name).name != name or (
            not name.endswith(SUFFIX)):
        raise ValueError(f'{path}: meta[{KEY!r}] must be the name of a folder '
                         f'beside it, got {name!r}')
    folder = Path(path).with_name(name)
    if not folder.is_dir():
        raise ValueError(f'{path} needs its folder {name}, which is missing')
    number, expected = len(list(folder.iterdir())), meta.get('num_shards')
    if number != expected:
        raise ValueError(f'{folder} lacks parts of {path}: it must have '
                         f'{expected} files, got {number}')
    return folder


def check_shards(folder: Path) -> dict[str, Any]:
    """Check that a folder has all parts of its tensors.

    Returns:
        Description of each tensor, for :func:`read_shards`.

    Raises:
        ValueError: If a part or a file is missing or damaged.
    """
    try:
        reader = storage().HuggingFaceStorageReader(str(folder))
        found = reader.read_metadata().state_dict_metadata
    except ImportError:
        raise
    except Exception as error:
        # A damaged file can raise any error.
        raise ValueError(f'{folder} is damaged: {error}') from error
    missing = [name for name, value in found.items() if sum(
        math.prod(chunk.sizes) for chunk in value.chunks) != math.prod(
            value.size)]
    if missing or not found:
        raise ValueError(f'{folder} lacks parts of '
                         f'{", ".join(missing[:3]) or "all tensors"}')
    return found


def read_shards(folder: Path) -> dict[str, Tensor]:
    """Read the complete tensors of a folder.

    See :func:`check_shards` for errors.
    """
    tensors = {name: empty(value.size, dtype=value.properties.dtype)
               for name, value in check_shards(folder).items()}
    with warnings.catch_warnings():
        # Each process reads on its own, as intended.
        warnings.simplefilter('ignore', UserWarning)
        storage().load(
            tensors, no_dist=True,
            storage_reader=storage().HuggingFaceStorageReader(str(folder)))
    return tensors


def join_shards(checkpoint: Any, path: str | Path) -> None:
    """Add the tensors of its folder, if any, to a checkpoint in place.

    Like in other checkpoints, ``state_dict`` then has the averages, if any,
    and ``ema_state_dict`` the parameters. See :func:`find_shards` and
    :func:`check_shards` for errors.
    """
    folder = find_shards(checkpoint, path)
    if folder is None:
        return
    averages = checkpoint.get('ema_state_dict')
    for name, value in read_shards(folder).items():
        kind, _, key = name.partition('/')
        if kind == 'optimizer':
            number, _, key = key.partition('/')
            checkpoint['optimizer']['state'][int(number)][key] = value
        elif kind == 'model' and averages is not None:
            averages[f'module.{key}'] = value
        else:
            checkpoint['state_dict'][key.removeprefix('module.')] = value
    del checkpoint['meta'][KEY], checkpoint['meta']['num_shards']


def remove_shards(path: str | Path, keep: str | None = None) -> None:
    """Remove the folders of a checkpoint, except ``keep``."""
    path = Path(path)
    for folder in [*path.parent.glob(f'{escape(path.name)}.*{SUFFIX}')]:
        if folder.name != keep:
            shutil.rmtree(folder, ignore_errors=True)
