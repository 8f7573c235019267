# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""``torch.load`` of files that may be damaged or made to do harm."""
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

# Instructions of a pickle, of which a tensor takes 32: each may become a
# hundred bytes in memory, and takes its time.
MAX_INSTRUCTIONS = 1_000_000
PER_STORAGE = 100
MAX_NESTING = 1000
# Pickles at the start of a file of the format before torch 1.6, and bytes.
LEGACY_PICKLES, LEGACY_BYTES = 5, 2**26


def safe_load(source: str | Path | bytes, mmap: bool = False) -> Any:
    """Read a file of ``torch.save`` with ``weights_only=True``, to the CPU.

    What it announces is checked before any of it is read: it may not unpack
    to more than it is, and its pickle may not be endless or nested without
    end. Its checksums must be those of its contents.

    Args:
        source: The file, or what is in it.
        mmap: Leave the tensors in the file until they are used.

    Raises:
        ValueError: If a check fails.
        Exception: What else ``torch.load`` raises.
    """
    is_data = isinstance(source, bytes)
    opened = io.BytesIO(source) if is_data else open(source, 'rb')
    with closing(opened) as file:
        size = file.seek(0, os.SEEK_END)
        sizes = None
        if zipfile.is_zipfile(file):
            sizes = _check_archive(file, size)
        else:
            file.seek(0)
            head = io.BytesIO(file.read(LEGACY_BYTES))
            for _ in range(LEGACY_PICKLES):
                _check_pickle(head, MAX_INSTRUCTIONS)
        file.seek(0)
        if mmap and sizes is not None:
            loaded = torch.load(str(source), 'cpu', weights_only=True,
                                mmap=True)
        else:
            loaded = torch.load(file, 'cpu', weights_only=True)
    _check_storages(loaded, sizes, size)
    return loaded


def _check_archive(file: BinaryIO, size: int) -> Counter:
    """Check the members of an archive; returns the sizes of its storages."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise ValueError('it has two members of one name')
        unpacked = sum(member.file_size for member in members)
        if unpacked > size:
            raise ValueError(f'it has {size} bytes and would unpack to '
                             f'{unpacked}')
        sizes = Counter(
            member.file_size for member in members
            if '/data/' in member.filename and member.file_size)
        limit = MAX_INSTRUCTIONS + PER_STORAGE * sizes.total()
        for member in members:
            if member.filename.endswith('.pkl'):
                _check_pickle(io.BytesIO(archive.read(member)), limit)
        # Also reads the checksums.
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f'{damaged} is damaged')
    return sizes


def _check_pickle(file: BinaryIO, limit: int) -> None:
    """Go through a pickle, without making anything of it."""
    nesting = 0
    for number, (code, _, _) in enumerate(pickletools.genops(file)):
        if code.name == 'MARK':
            nesting += 1
        elif pickletools.markobject in code.stack_before:
            nesting -= 1
        if number > limit or nesting > MAX_NESTING:
            raise ValueError('its pickle is too long, or nested too deep')


def _check_storages(loaded: Any, sizes: Counter | None, size: int) -> None:
    """Check that no tensor reaches behind what the file has for it."""
    found = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes()
             for tensor in _dense_tensors(loaded)}
    total = sum(found.values())
    own = Counter(found.values())
    del own[0]
    if total > size or (sizes is not None and own - sizes):
        raise ValueError('a tensor reaches behind its storage')


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
