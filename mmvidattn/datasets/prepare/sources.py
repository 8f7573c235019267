# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Finding the files that were downloaded."""
from collections.abc import Collection, Sequence
from pathlib import Path


def find_files(sources: Sequence[Path], names: Collection[str]
               ) -> dict[str, Path]:
    """Files of these names among the sources, or in folders of them."""
    found: dict[str, Path] = {}
    for source in sources:
        if not source.exists():
            raise ValueError(f'there is no {source}')
        for name in names:
            path = source / name if source.is_dir() else source
            if path.name == name and path.is_file():
                found.setdefault(name, path)
    return found


def find_one(sources: Sequence[Path], *names: str) -> Path:
    """The first file that there is of several names for the same.

    Raises:
        ValueError: If there is none.
    """
    found = find_files(sources, names)
    for name in names:
        if name in found:
            return found[name]
    raise ValueError(f'there is no {" or ".join(names)} among '
                     + ', '.join(map(str, sources)))
