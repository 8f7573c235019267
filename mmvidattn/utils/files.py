# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Atomic writes, file hashes, and memory-mapped arrays."""
import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def replacing(path: str | Path, shared: bool = False) -> Iterator[Path]:
    """Write a file completely or not at all, even if the program is killed.

    Args:
        path: The file. Missing folders are created. If it is a symbolic link,
            the file that it points to is written.
        shared: Several processes may write the same file at the same time;
            the last one wins. Each write then has its own temporary file,
            which a killed process leaves behind. Otherwise, the next write
            replaces the temporary file, and the block ends when the file is on
            the disk, so that it survives a power failure. Defaults to False.

    Yields:
        A temporary path to write. It is renamed to ``path`` after the block,
        or deleted if the block raises an error.

    Raises:
        OSError: If the file cannot be written, for example on a full disk.
            The old file stays.

    Example::

        with replacing('x.pth') as part:
            torch.save(weights, part)
    """
    path = Path(path)
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{uuid.uuid4().hex if shared else path.name}.part')
    try:
        yield part
        if not shared:
            flush(part)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if not shared and os.name == 'posix':
        flush(path.parent)


def write_atomically(path: str | Path, content: bytes | str,
                     shared: bool = False) -> None:
    """Write bytes or UTF-8 text; arguments as in :func:`replacing`."""
    if isinstance(content, str):
        content = content.encode()
    with replacing(path, shared) as part:
        part.write_bytes(content)


def hash_file(path: str | Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def flush(path: str | Path) -> None:
    """Wait until a file or folder is written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def map_numbers(path: str | Path) -> np.ndarray:
    """Map a ``.npy`` file of numbers into memory, without unpickling.

    Raises:
        ValueError: If the file is missing or damaged, does not contain
            numbers, or is smaller than its header says.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f'there is no file {path}')
    try:
        array = np.load(path, mmap_mode='r', allow_pickle=False)
    except Exception as error:
        # A damaged file can raise any error.
        raise ValueError(f'{path} must be a .npy file of numbers that needs '
                         f'no unpickling: {str(error).partition(" If ")[0]}'
                         ) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f'{path} must be a .npy file, not an archive')
    if array.dtype.kind not in 'fiub':
        raise ValueError(f'{path} must contain numbers, got {array.dtype}')
    return array
