# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backend that lets mmengine's functions read URLs of object stores."""
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.fileio import BaseStorageBackend, register_backend

from .fetch import STORES, ask, exists, join_url, local_file


@register_backend('mmvidattn', prefixes=STORES, force=True)
class RemoteBackend(BaseStorageBackend):
    """Files in object stores, copied to the cache of :func:`local_file`.

    mmengine itself passes ``s3://`` to petrel_client, a package that is not
    published. Its users write ``petrel://``, or ``backend='petrel'``.
    """

    def get(self, filepath: str) -> bytes:
        """Read the newest version of a file."""
        with local_file(filepath, latest=True) as path:
            return path.read_bytes()

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """Read the newest version of a text file."""
        return self.get(filepath).decode(encoding)

    def exists(self, filepath: str) -> bool:
        """Return True if a file or folder exists."""
        return exists(filepath)

    def isfile(self, filepath: str) -> bool:
        """Return True if a file exists."""
        return ask(str(filepath), lambda fs, at: fs.isfile(at))

    def isdir(self, filepath: str) -> bool:
        """Return True if a folder exists."""
        return ask(str(filepath), lambda fs, at: fs.isdir(at))

    def join_path(self, filepath: str, *filepaths: str) -> str:
        """Join a URL with names below it."""
        return join_url(filepath, *map(os.fspath, filepaths))

    @contextmanager
    def get_local_path(self, filepath: str) -> Iterator[Path]:
        """Yield a local copy of a file that never changes."""
        with local_file(filepath) as path:
            yield str(path)
