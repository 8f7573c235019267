# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""``torch.load`` of files that may be damaged or malicious.

With ``weights_only=True``, torch rejects code, and tensors that exceed their
storage. This module adds further checks:

- The members of an archive may not unpack to more bytes than the file has,
  and their checksums must be right.
- A pickle may not have more instructions than its number of tensors can
  explain (an instruction takes about 70 bytes of memory). It may not be nested
  so deeply that Python cannot hash it.
- With ``mmap``, a storage may not be larger than its member of the archive.
"""
import io
import os
import pickletools
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import torch

# Instructions allowed in a pickle: in total, plus per storage. A tensor needs
# 32.
MAX_INSTRUCTIONS = 1_000_000
PER_STORAGE = 100
MAX_NESTING = 1000
# Number of pickles at the start of a file in the format before torch 1.6, and
# their maximum size in bytes.
LEGACY_PICKLES, LEGACY_BYTES = 5, 2**26


def safe_load(source: str | Path | bytes, mmap: bool = False) -> Any:
    """Read a file of ``torch.save`` with ``weights_only=True``, to the CPU.

    Args:
        source: The file, or its contents.
        mmap: Read the tensors of a file only when they are used. Defaults to
            False.

    Raises:
        ValueError: If a check of this module fails.
        Exception: For any error of ``torch.load``.
    """
    is_data = isinstance(source, bytes)
    with closing(io.BytesIO(source) if is_data else open(source, 'rb')
                 ) as file:
        is_archive = zipfile.is_zipfile(file)
        if is_archive:
            sizes = _check_archive(file)
        else:
            file.seek(0)
            head = io.BytesIO(file.read(LEGACY_BYTES))
            for _ in range(LEGACY_PICKLES):
                _check_pickle(head, MAX_INSTRUCTIONS)
        file.seek(0)
        if not (mmap and is_archive):
            return torch.load(file, 'cpu', weights_only=True)
    loaded = torch.load(str(source), 'cpu', weights_only=True, mmap=True)
    storages = {x.untyped_storage()._cdata: x.untyped_storage().nbytes()
                for x in _dense_tensors(loaded)}
    if Counter(size for size in storages.values() if size) - sizes:
        raise ValueError('a storage is larger than its member of the archive')
    return loaded


def _check_archive(file: BinaryIO) -> Counter:
    """Check the members of an archive, and return its storage sizes."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > size:
            raise ValueError(f'it has {size} bytes, but would unpack to '
                             f'{unpacked}')
        sizes = Counter(
            member.file_size for member in members
            if '/data/' in member.filename and member.file_size)
        limit = MAX_INSTRUCTIONS + PER_STORAGE * sizes.total()
        for member in members:
            if member.filename.endswith('.pkl'):
                _check_pickle(io.BytesIO(archive.read(member)), limit)
        # testzip also reads the checksums.
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f'{damaged} is damaged')
    return sizes


def _check_pickle(file: BinaryIO, limit: int) -> None:
    """Check the length and the nesting of a pickle without running it."""
    # Depth of nested tuples of each object on the stack; None is a mark.
    # Python hashes nested tuples by recursion in C, without a limit.
    stack: list[int | None] = []
    memo: dict[int, int] = {}
    nesting = 0
    for number, (code, arg, _) in enumerate(pickletools.genops(file)):
        depth = 0
        if pickletools.markobject in code.stack_before:
            nesting -= 1
            while stack and (top := stack.pop()) is not None:
                depth = max(depth, top)
            left = code.stack_before.index(pickletools.markobject)
        else:
            left = len(code.stack_before)
        for _ in range(min(left, len(stack))):
            depth = max(depth, stack.pop() or 0)
        if code.name.startswith('TUPLE'):
            depth += 1
        elif code.name.endswith('GET'):
            depth = memo.get(int(arg), 0)
        nesting += code.name == 'MARK'
        stack += [None if kind is pickletools.markobject else depth
                  for kind in code.stack_after]
        if code.name == 'MEMOIZE' or code.name.endswith('PUT'):
            key = len(memo) if arg is None else int(arg)
            memo[key] = (stack[-1] if stack else 0) or 0
        if number > limit or max(nesting, depth) > MAX_NESTING:
            raise ValueError('its pickle is too long, or nested too deeply')


def _dense_tensors(value: Any) -> Iterator[torch.Tensor]:
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, torch.Tensor):
            if value.layout == torch.strided and not value.is_quantized:
                yield value
        elif isinstance(value, Mapping):
            stack += value.values()
        elif isinstance(value, (list, tuple)):
            stack += value
