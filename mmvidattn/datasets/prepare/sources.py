# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Search for downloaded files by name."""
from collections.abc import Collection, Sequence
from pathlib import Path


def find_files(sources: Sequence[Path], names: Collection[str]
               ) -> dict[str, Path]:
    """Return the paths of files with these names.

    Args:
        sources: Files, and folders whose direct content is searched.
        names: File names.
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
    """Return the paths of files with these names; require at least one.

    Raises:
        ValueError: If no file is found.
    """
    files = find_files(sources, names)
    if not files:
        raise ValueError(f'no {" or ".join(names)} among '
                         + ', '.join(map(str, sources)))
    return files


def find_one(sources: Sequence[Path], *names: str) -> Path:
    """Return the first of ``names`` that exists.

    Raises:
        ValueError: If no file is found.
    """
    files = find_any(sources, names)
    return next(files[name] for name in names if name in files)
