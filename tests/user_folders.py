# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Empty folders for each test, and a watch for files in the checkout."""
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

# What Python, git and the programs of developers write.
IGNORED = {'.git', '.hypothesis', '.pytest_cache', '.ruff_cache',
           '__pycache__'}
# Settings of other packages for their caches, which all tests share.
CACHES = ('HYPOTHESIS_STORAGE_DIRECTORY', 'MPLCONFIGDIR', 'PIP_CACHE_DIR',
          'TRITON_CACHE_DIR', 'UV_CACHE_DIR')
# Folders without a setting: of onnxruntime, of the rustc that pip starts, of
# yapf and of fontconfig.
FOREIGN = {'.rustup', 'Microsoft', 'YAPF', 'fontconfig'}


class UserFolders(NamedTuple):
    """A user's folders."""
    work: Path
    home: Path
    cache: Path

    def list_left_files(self) -> list[str]:
        """Describe the files in the home folder and in the cache."""
        return [
            f'in the {name}: {", ".join(sorted(files))}'
            for name, folder in (('home folder', self.home),
                                 ('cache', self.cache))
            if (files := {*os.listdir(folder)} - FOREIGN)]


@contextmanager
def make_user_folders(folder: Path) -> Iterator[UserFolders]:
    """Make a user's folders below a folder, and enter them.

    The environment passes them on to programs that a test starts.
    """
    folders = UserFolders(*(folder / name for name in UserFolders._fields))
    for path in folders:
        path.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folders.work)
        patch.setenv('HOME', str(folders.home))
        patch.setenv('USERPROFILE', str(folders.home))
        patch.setenv('XDG_CACHE_HOME', str(folders.cache))
        patch.delenv('XDG_CONFIG_HOME', raising=False)
        yield folders


def is_watched(name: str) -> bool:
    return name not in IGNORED and not name.startswith('.venv')


class FolderWatch:
    """Finds new files in a folder by the times of its folders.

    Args:
        folder: Folder to watch.
    """

    def __init__(self, folder: Path) -> None:
        # Time of change and watched names of each folder.
        self._folders: dict[str, tuple[int, set[str]]] = {}
        self._read(str(folder))

    def _read(self, folder: str) -> None:
        time = os.stat(folder).st_mtime_ns
        entries = [x for x in os.scandir(folder) if is_watched(x.name)]
        self._folders[folder] = time, {entry.name for entry in entries}
        for entry in entries:
            if (entry.is_dir(follow_symlinks=False)
                    and entry.path not in self._folders):
                self._read(entry.path)

    def find_new(self) -> list[str]:
        """Return the files and folders that are new since the last call."""
        new = []
        for folder, (time, names) in [*self._folders.items()]:
            if not os.path.isdir(folder):
                del self._folders[folder]
            elif os.stat(folder).st_mtime_ns != time:
                self._read(folder)
                new += (os.path.join(folder, name)
                        for name in self._folders[folder][1] - names)
        return sorted(new)
