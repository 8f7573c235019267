# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a data root without damaging the results of earlier runs."""
import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ...utils.files import hash_file, write_atomically
from ...utils.lock import lock_folder
from ...version import __version__

PROVENANCE = 'provenance.json'
BLOCK = 1 << 16


def join_lines(items: Iterable) -> bytes:
    """Return a text file with one line per item."""
    return ''.join(f'{item}\n' for item in items).encode()


def _hash_folder(path: Path) -> str:
    """Return the SHA-256 of a folder, abbreviated, in hexadecimal.

    For speed, it covers only the name, the size, and the first and last 64 KiB
    of each file.
    """
    digest = hashlib.sha256()
    for file in sorted(path.rglob('*')):
        if file.is_file():
            size = file.stat().st_size
            name = file.relative_to(path).as_posix()
            digest.update(f'{name}\n{size}\n'.encode())
            with open(file, 'rb') as opened:
                digest.update(opened.read(BLOCK))
                opened.seek(max(0, size - BLOCK))
                digest.update(opened.read(BLOCK))
    return digest.hexdigest()


def read_provenance(root: Path) -> dict:
    """Read the record that :class:`Output` writes into a data root.

    Raises:
        ValueError: If ``provenance.json`` has another format.
    """
    path = root / PROVENANCE
    if not path.is_file():
        return dict(runs={}, unfinished={}, may_change={})
    try:
        record = json.loads(path.read_text('utf-8'))
        if not all(isinstance(record[key], dict)
                   for key in ('runs', 'unfinished', 'may_change')):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise ValueError(f'{path} was not written by mmvidattn: move it, or '
                         'choose another folder') from None
    return record


class Output:
    """Context manager for a run that writes files into a data root.

    Files are written atomically. A file that already has the same content is
    kept, so an interrupted run can be repeated. A file with different content
    is an error, because it comes from another program, or from other options
    or sources. The exceptions are files that several runs write, such as a
    list of the videos of two annotation files: :meth:`begin` records their
    SHA-256 in ``provenance.json``, and a file with a recorded hash may be
    overwritten. A lock allows only one run at a time.

    Args:
        root: Data root, which is created.
        command: Command that the user ran, such as ``prepare thumos14``.
        part: Name of this run, unique in the data root, such as the split.
        options: Options that determine the output.
        sources: Files and folders that the run reads.
        force: Overwrite files with different content.

    Attributes:
        written: Number of files that the run wrote.
        kept: Number of files that the run found complete.
    """

    def __init__(self, root: Path, command: str, part: str,
                 options: Mapping[str, Any], sources: Iterable[Path],
                 force: bool = False) -> None:
        self.root = root
        self.key = f'{command} {part}'.strip()
        self.force = force
        self.written = self.kept = 0
        self.record = dict(
            command=command, mmvidattn=__version__,
            date=datetime.datetime.now().isoformat(timespec='seconds'),
            options=dict(options),
            sources={str(path): _hash_folder(path) if path.is_dir()
                     else hash_file(path) for path in sources})
        root.mkdir(parents=True, exist_ok=True)
        self._lock = ExitStack()
        self._lock.enter_context(lock_folder(root))
        try:
            self.provenance = read_provenance(root)
        except ValueError:
            self._lock.close()
            raise
        self.before = json.dumps(self.provenance)

    def __enter__(self) -> 'Output':
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        try:
            if kind and not self.written:
                self._restore_provenance()
        finally:
            self._lock.close()

    def _restore_provenance(self) -> None:
        if self.before == json.dumps(self.provenance):
            return
        self.provenance = json.loads(self.before)
        if self.provenance['runs'] or self.provenance['unfinished']:
            self._save()
        else:
            (self.root / PROVENANCE).unlink(missing_ok=True)

    def other_runs(self) -> dict[str, dict]:
        """Return the records of all finished runs except this one."""
        return {key: run for key, run in self.provenance['runs'].items()
                if key != self.key}

    def check_same(self, **options: Any) -> None:
        """Check options that must be equal in all runs into a data root.

        Raises:
            ValueError: If another run had a different value, without
                ``force``.
        """
        for key, run in self.other_runs().items():
            for name, value in options.items():
                earlier = run['options'].get(name, value)
                if earlier != value and not self.force:
                    raise ValueError(
                        f'{self.root}: {name} must be {earlier} as in the run '
                        f'"{key}", got {value}; choose another folder, or '
                        'pass --force')

    def begin(self, may_change: Mapping[Path, bytes] = {}) -> None:
        """Record the start of the run.

        Args:
            may_change: Files that later runs may overwrite, with the content
                that this run writes.
        """
        known = self.provenance['may_change']
        for path, content in may_change.items():
            digest = hashlib.sha256(content).hexdigest()
            name = path.relative_to(self.root).as_posix()
            known[name] = sorted({*known.get(name, ()), digest})
        self.provenance['unfinished'][self.key] = self.record
        self._save()

    def must_write(self, path: Path, content: bytes) -> bool:
        """Return True if a file is missing or has different content.

        Raises:
            ValueError: If the file has different content, and this run may
                not overwrite it.
        """
        if not path.is_file():
            return True
        existing = path.read_bytes()
        if existing == content:
            return False
        known = self.provenance['may_change'].get(
            path.relative_to(self.root).as_posix(), ())
        if not self.force and \
                hashlib.sha256(existing).hexdigest() not in known:
            raise ValueError(
                f'{path} already exists with different content, from another '
                'program, or from other sources or options; pass --force to '
                'overwrite it')
        return True

    def write(self, path: Path, content: bytes) -> None:
        """Write a file, unless it already has this content.

        Raises:
            ValueError: If the file has different content, and this run may
                not overwrite it.
        """
        if self.must_write(path, content):
            write_atomically(path, content)
            self.written += 1
        else:
            self.kept += 1

    def write_new(self, path: Path, content: bytes) -> None:
        """Write a file, unless it exists with any content."""
        if path.is_file():
            self.kept += 1
        else:
            self.write(path, content)

    def finish(self, counts: Mapping[str, Any], **more: Any) -> None:
        """Record the end of the run and its counts."""
        self.provenance['unfinished'].pop(self.key, None)
        self.provenance['runs'][self.key] = {
            **self.record, 'counts': dict(counts), **more}
        self._save()

    def _save(self) -> None:
        text = json.dumps(self.provenance, indent=1, ensure_ascii=False)
        write_atomically(self.root / PROVENANCE, f'{text}\n'.encode())


def describe_root(root: str | Path) -> str:
    """Return one line on the origin of a data root's features and targets."""
    try:
        record = read_provenance(Path(root))
    except ValueError as error:
        return f'features and targets: {root} ({error})'
    descriptions = []
    for key, run in record['runs'].items():
        sources = ''.join(sorted(run['sources'].values())).encode()
        digests = dict(sources=hashlib.sha256(sources).hexdigest())
        if 'targets_sha256' in run['counts']:
            digests['targets'] = run['counts']['targets_sha256']
        descriptions.append(', '.join([
            key, run['date'][:10],
            *(f'{name} sha256 {digest[:12]}'
              for name, digest in digests.items())
        ]))
    descriptions += [f'{key}, unfinished' for key in record['unfinished']]
    return (f'features and targets: {root} '
            + '(' + ('; '.join(descriptions)
                     or f'no {PROVENANCE}, origin unknown') + ')')
