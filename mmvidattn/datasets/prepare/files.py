# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Find downloaded files, and write a data root without losing its files."""
import argparse
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...utils.files import write_atomically
from ..annotations.video_segment import Fault


class Recipe(NamedTuple):
    """Recipe of a published data set.

    Attributes:
        sources: Name of the downloads in the help.
        needs: Text about the needed downloads.
        prepare: Function that writes the data root. Its arguments are the
            command line and the handler of invalid segments.
        options: Arguments of ``add_argument`` by option.
    """
    sources: str
    needs: str
    prepare: Callable[[argparse.Namespace, Fault], None]
    options: Mapping[str, dict[str, Any]] = {}


def join_lines(items: Iterable) -> bytes:
    """Return a text file with one line per item."""
    return ''.join(f'{item}\n' for item in items).encode()


def npy_bytes(array: np.ndarray) -> bytes:
    """Return an array as the content of a ``.npy`` file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


class Output:
    """Writer of the files of a data root.

    Files are written atomically. A file that already has the same content is
    kept, so an interrupted run can be repeated. A file with different content
    is an error, because it comes from another program, or from other options
    or sources.

    Args:
        root: Data root, which is created.
        force: Overwrite files with different content.

    Attributes:
        written: Number of files that were written.
        kept: Number of files that were found complete.
    """

    def __init__(self, root: Path, force: bool = False) -> None:
        self.root = root
        self.force = force
        self.written = self.kept = 0
        root.mkdir(parents=True, exist_ok=True)

    def check(self, path: Path, content: bytes,
              replaceable: bytes | None = None) -> bool:
        """Return True if a file is missing or has different content.

        Raises:
            ValueError: If the file must not be overwritten. ``replaceable`` is
                another content that may be.
        """
        existing = path.read_bytes() if path.is_file() else None
        if existing not in (None, content, replaceable) and not self.force:
            raise ValueError(
                f'{path} already exists with different content, from another '
                'program, or from other sources or options; pass --force to '
                'overwrite it')
        return existing != content

    def write(self, path: Path, content: bytes,
              replaceable: bytes | None = None) -> None:
        """Write a file, unless it already has this content; see ``check``."""
        changed = self.check(path, content, replaceable)
        if changed:
            write_atomically(path, content)
        self.written += changed
        self.kept += not changed


def find_files(sources: Sequence[Path], names: Collection[str]
               ) -> dict[str, Path]:
    """Return the paths of files with these names, by name.

    The sources are files, and folders whose direct content is searched.
    """
    files: dict[str, Path] = {}
    for source in sources:
        if not source.exists():
            raise ValueError(f'no file or folder {source}')
        for name in names:
            path = source / name if source.is_dir() else source
            if path.name == name and path.is_file():
                files.setdefault(name, path)
    return files


def find_any(sources: Sequence[Path], names: Collection[str]
             ) -> dict[str, Path]:
    """Return the paths of files with these names; require at least one."""
    files = find_files(sources, names)
    if not files:
        raise ValueError(f'no {" or ".join(names)} among '
                         + ', '.join(map(str, sources)))
    return files


def find_one(sources: Sequence[Path], *names: str) -> Path:
    """Return the first of ``names`` that exists; require one."""
    files = find_any(sources, names)
    return next(files[name] for name in names if name in files)
