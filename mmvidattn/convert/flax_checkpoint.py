# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Read flax checkpoints without flax, and without running code from them.

A file of ``flax.training.checkpoints`` consists of nested msgpack maps. Arrays
are msgpack extensions with a msgpack list of shape, type and bytes. Arrays in
chunks, of more than 1 GiB, are not supported.
https://flax.readthedocs.io/en/latest/api_reference/flax.serialization.html
"""
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

DTYPES = {
    name: getattr(torch, name)
    for name in ('bool', 'uint8', 'int8', 'int16', 'int32', 'int64',
                 'float16', 'bfloat16', 'float32', 'float64')
}
# Codes of flax's extensions: array and numpy scalar.
ARRAYS = 1, 3


def load_flax_file(path: str | Path) -> dict[str, Tensor]:
    """Return the arrays of a flax checkpoint by path, joined with '/'.

    Args:
        path: File written by ``flax.training.checkpoints.save_checkpoint``,
            such as a scenic checkpoint.

    Raises:
        FileNotFoundError: If the file is missing.
        ImportError: If msgpack is not installed.
        ValueError: If the file has another format.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'no checkpoint file {path}')
    try:
        from msgpack import unpackb
    except ImportError as error:
        raise ImportError(
            f'{path} needs msgpack: pip install "mmvidattn[flax]"') from error

    def to_tensor(code: int, content: bytes) -> Tensor | None:
        if code not in ARRAYS:
            return None
        shape, name, data = unpackb(content)
        if name not in DTYPES:
            raise ValueError('type of an array must be one of '
                             f'{", ".join(DTYPES)}, got {name}')
        if not data:
            return torch.empty(shape, dtype=DTYPES[name])
        # Copy, so that the bytes of the file can be freed.
        return torch.frombuffer(
            bytearray(data), dtype=DTYPES[name]).reshape(shape)

    try:
        tree = unpackb(path.read_bytes(), ext_hook=to_tensor)
        if not isinstance(tree, dict):
            raise ValueError(f'expected a map, got a {type(tree).__name__}')
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f'{path} is not a flax checkpoint: {error}') from None
    return dict(_leaves(tree))


def _leaves(tree: dict, prefix: str = '') -> Iterator[tuple[str, Tensor]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f'{prefix}{key}/')
        elif torch.is_tensor(value):
            yield f'{prefix}{key}', value
