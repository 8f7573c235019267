# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Read flax checkpoints without flax, and without running code from them.

A file of ``flax.training.checkpoints`` consists of nested msgpack maps. Arrays
are msgpack extensions with a msgpack list of shape, type and bytes.
https://github.com/msgpack/msgpack/blob/master/spec.md,
https://flax.readthedocs.io/en/latest/api_reference/flax.serialization.html
"""
import struct
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    name: getattr(torch, name)
    for name in ('bool', 'uint8', 'int8', 'int16', 'int32', 'int64',
                 'float16', 'bfloat16', 'float32', 'float64')
}
# Codes of flax's extensions: array and numpy scalar.
ARRAY, NUMBER = 1, 3
CHUNKED = '__msgpack_chunked_array__'
MAX_DEPTH = 64
_NUMBERS = dict(
    zip(range(0xca, 0xd4), ('>f', '>d', '>B', '>H', '>I', '>Q', '>b', '>h',
                            '>i', '>q')))
_CONSTANTS = {0xc0: None, 0xc2: False, 0xc3: True}


class _Reader:
    """Reader of msgpack data as plain types and tensors."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> memoryview:
        start, self.position = self.position, self.position + size
        if self.position > len(self.data):
            raise ValueError('unexpected end of the file')
        return self.data[start:self.position]

    def number(self, form: str) -> int | float:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def size(self, power: int) -> int:
        return self.number(('>B', '>H', '>I')[power])

    def read(self, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError(f'more than {MAX_DEPTH} nested levels')
        code = self.number('>B')
        if code < 0x80:
            return code
        if code >= 0xe0:
            return code - 0x100
        if code < 0x90:
            return self.map(code & 0xf, depth)
        if code < 0xa0:
            return self.list(code & 0xf, depth)
        if code < 0xc0:
            return str(self.take(code & 0x1f), 'utf-8')
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self.number(_NUMBERS[code])
        if 0xc4 <= code <= 0xc6:
            return self.take(self.size(code - 0xc4))
        if 0xc7 <= code <= 0xc9:
            return self.extension(self.size(code - 0xc7))
        if 0xd4 <= code <= 0xd8:
            return self.extension(1 << code - 0xd4)
        if 0xd9 <= code <= 0xdb:
            return str(self.take(self.size(code - 0xd9)), 'utf-8')
        if code in (0xdc, 0xdd):
            return self.list(self.size(code - 0xdb), depth)
        if code in (0xde, 0xdf):
            return self.map(self.size(code - 0xdd), depth)
        raise ValueError(f'byte {code:#x} at {self.position - 1} is not valid '
                         'msgpack')

    def list(self, length: int, depth: int) -> list:
        return [self.read(depth + 1) for _ in range(length)]

    def map(self, length: int, depth: int) -> Any:
        entries = {}
        for _ in range(length):
            key = self.read(depth + 1)
            if not isinstance(key, (str, int)):
                raise ValueError('keys must be text or numbers, got '
                                 f'{type(key).__name__}')
            entries[str(key)] = self.read(depth + 1)
        return _joined(entries) if CHUNKED in entries else entries

    def extension(self, size: int) -> Any:
        code = self.number('>b')
        content = self.take(size)
        if code not in (ARRAY, NUMBER):
            return None
        shape, name, data = _Reader(content).read()
        name = name if isinstance(name, str) else str(name, 'utf-8')
        if name not in DTYPES:
            raise ValueError('type of an array must be one of '
                             f'{", ".join(DTYPES)}, got {name}')
        # Copy, so that the bytes of the file can be freed.
        values = torch.frombuffer(
            bytearray(data), dtype=DTYPES[name]) if len(
                data) else torch.empty(0, dtype=DTYPES[name])
        return values.reshape(shape)


def _joined(entries: dict) -> Tensor:
    """Join the chunks of an array larger than 2 GiB."""
    shape, chunks = (
        list(entries[key].values()) for key in ('shape', 'chunks'))
    return torch.cat([chunk.flatten() for chunk in chunks]).reshape(shape)


def load_flax_file(path: str | Path) -> dict[str, Tensor]:
    """Return the arrays of a flax checkpoint by path, joined with '/'.

    Args:
        path: File written by ``flax.training.checkpoints.save_checkpoint``,
            such as a scenic checkpoint.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file has another format.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'no checkpoint file {path}')
    reader = _Reader(memoryview(path.read_bytes()))
    try:
        tree = reader.read()
        if not isinstance(tree, dict):
            raise ValueError(f'expected a map, got a {type(tree).__name__}')
        if reader.position < len(reader.data):
            raise ValueError('unexpected data after the end')
    except (ValueError, TypeError, KeyError, AttributeError,
            RuntimeError) as error:
        raise ValueError(
            f'{path} is not a flax checkpoint: {error}') from None
    return dict(_leaves(tree))


def _leaves(tree: dict, prefix: str = ''):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f'{prefix}{key}/')
        elif torch.is_tensor(value):
            yield f'{prefix}{key}', value
