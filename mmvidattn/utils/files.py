# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files that are there whole or not at all."""
import os
import uuid
from pathlib import Path


def write_atomically(path: str | Path, content: bytes | str,
                     to_disk: bool = True, shared: bool = False) -> None:
    """Write a file whole or not at all, whenever the program ends.

    Args:
        path: The file; its folder is made.
        content: Text is encoded in UTF-8.
        to_disk: Whether to return when it is on the disk, and not only in the
            system's memory, where a loss of power would lose it.
        shared: Whether other processes may write the same file at the same
            time; one of them is the last. What a killed one leaves beside the
            file then stays; otherwise the next one writes over it.

    Raises:
        OSError: If it cannot be written, as on a full disk. What was there
            stays.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode()
    part = path.with_name(
        f'.{uuid.uuid4().hex if shared else path.name}.part')
    try:
        part.write_bytes(content)
        if to_disk:
            flush(part)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if to_disk and os.name == 'posix':
        flush(path.parent)


def flush(path: str | Path) -> None:
    """Have a file or folder written to the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
