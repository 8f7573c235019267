# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Writing a data root so that no run harms what another one made."""
import datetime
import errno
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...utils.files import hash_file, write_atomically
from ...version import __version__

try:
    import fcntl
except ImportError:
    # Not on Windows: two runs at a time are not told from each other there.
    fcntl = None

PROVENANCE = 'provenance.json'
BLOCK = 1 << 16


def lock(folder: Path) -> int | None:
    """Keep other runs out of a folder until the result is closed.

    Raises:
        ValueError: If another run is writing into it.
    """
    if fcntl is None:
        return None
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some network disks have no locks.
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            os.close(opened)
            raise ValueError(f'another run is writing into {folder}: start '
                             'this one again when it is done') from None
    return opened


def _hash_folder(path: Path) -> str:
    """Return the SHA-256 of the files of a folder, in hexadecimal.

    It covers the name, the size, and the first and last 64 KiB of each file,
    because a folder of features has gigabytes.
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
    """What made a data root, as :class:`Output` left it.

    Raises:
        ValueError: If its ``provenance.json`` is not of this package.
    """
    path = root / PROVENANCE
    if not path.is_file():
        return dict(runs={}, unfinished={}, may_change={})
    try:
        found = json.loads(path.read_text('utf-8'))
        if not all(isinstance(found[key], dict)
                   for key in ('runs', 'unfinished', 'may_change')):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise ValueError(f'{path} is none that mmvidattn wrote: move it away '
                         'or choose another folder') from None
    return found


class Output:
    """A run that writes files into a data root, as a context.

    A file is written once, whole or not at all. One that is there with the
    same content stays, so that a run that was interrupted can be started
    again; one with other content is an error: another program made it, or a
    run with other options or sources. The exception are files that grow with
    each run, such as a list that two annotation files share: these are
    announced to :meth:`begin`, which notes their SHA-256 in
    ``provenance.json`` before they are written. One run at a time writes into
    a folder.

    Args:
        root: The folder, which is made.
        command: What the user called, such as ``prepare thumos14``.
        part: Of several runs into one root what tells this one from the
            others, such as the split.
        options: What the output depends on, but for the sources.
        sources: Files and folders that the run reads.
        force: Write over files of other content.
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
        self._lock = lock(root)
        try:
            self.provenance = read_provenance(root)
        except ValueError:
            self._unlock()
            raise
        self.before = json.dumps(self.provenance)

    def __enter__(self) -> 'Output':
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        try:
            if kind and not self.written:
                self._leave_no_trace()
        finally:
            self._unlock()

    def _leave_no_trace(self) -> None:
        # Of a run that was refused.
        if self.before == json.dumps(self.provenance):
            return
        self.provenance = json.loads(self.before)
        if self.provenance['runs'] or self.provenance['unfinished']:
            self._save()
        else:
            (self.root / PROVENANCE).unlink(missing_ok=True)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def others(self) -> dict[str, dict]:
        """The runs that were finished before, but for this one."""
        return {key: run for key, run in self.provenance['runs'].items()
                if key != self.key}

    def same_for_all(self, **options: Any) -> None:
        """Options that all runs into one root must agree in.

        Raises:
            ValueError: If another run had others, unless it is forced.
        """
        for key, run in self.others().items():
            for name, value in options.items():
                found = run['options'].get(name, value)
                if found != value and not self.force:
                    raise ValueError(
                        f'{self.root}: "{key}" had {name}={found}, and now it '
                        f'is {value}: take another folder, or --force')

    def begin(self, may_change: Mapping[Path, bytes] = {}) -> None:
        """Announce the run, and what it writes to files that may change.

        Args:
            may_change: The content of files that later runs may write over.
        """
        known = self.provenance['may_change']
        for path, content in may_change.items():
            digest = hashlib.sha256(content).hexdigest()
            name = path.relative_to(self.root).as_posix()
            known[name] = sorted({*known.get(name, ()), digest})
        self.provenance['unfinished'][self.key] = self.record
        self._save()

    def must_write(self, path: Path, content: bytes) -> bool:
        """Whether a file lacks that content, and this run may write it.

        Raises:
            ValueError: If it may not.
        """
        if not path.is_file():
            return True
        found = path.read_bytes()
        if found == content:
            return False
        known = self.provenance['may_change'].get(
            path.relative_to(self.root).as_posix(), ())
        if not self.force and hashlib.sha256(found).hexdigest() not in known:
            raise ValueError(
                f'{path} is there with other content: it was made by another '
                'program, or from other sources or with other options, and '
                'stays as it is; --force writes over it')
        return True

    def write(self, path: Path, content: bytes) -> None:
        """Write a file, unless it has that content already.

        Raises:
            ValueError: If it has other content, which this run may not
                change.
        """
        if self.must_write(path, content):
            write_atomically(path, content)
            self.written += 1
        else:
            self.keep()

    def keep(self) -> None:
        """Count a file that is there already, whatever its content."""
        self.kept += 1

    def write_new(self, path: Path, content: bytes) -> None:
        """Write a file unless it is there, with whatever content."""
        if path.is_file():
            self.keep()
        else:
            self.write(path, content)

    def finish(self, counts: Mapping[str, Any], **more: Any) -> None:
        """Note in ``provenance.json`` that all is written, and how much."""
        self.provenance['unfinished'].pop(self.key, None)
        self.provenance['runs'][self.key] = {
            **self.record, 'counts': dict(counts), **more}
        self._save()

    def _save(self) -> None:
        text = json.dumps(self.provenance, indent=1, ensure_ascii=False)
        write_atomically(self.root / PROVENANCE, f'{text}\n'.encode())


def describe_root(root: str | Path) -> str:
    """One line on whose features and targets a data root has."""
    try:
        found = read_provenance(Path(root))
    except ValueError as error:
        return f'features and targets: {root} ({error})'
    said = []
    for key, run in found['runs'].items():
        sources = ''.join(sorted(run['sources'].values())).encode()
        digests = dict(sources=hashlib.sha256(sources).hexdigest())
        if 'targets_sha256' in run['counts']:
            digests['targets'] = run['counts']['targets_sha256']
        said.append(', '.join([
            key, run['date'][:10],
            *(f'{name} sha256 {digest[:12]}'
              for name, digest in digests.items())
        ]))
    said += [f'{key}, unfinished' for key in found['unfinished']]
    return (f'features and targets: {root} '
            f'({"; ".join(said) or f"no {PROVENANCE}, origin unknown"})')
