# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Local copies of files in object stores and on the web, by fsspec."""
import errno
import logging
import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from mmengine.logging import print_log

from ..printable import brief
from ..urls import without_secrets
from .cache import FileCache, HeldFile

T = TypeVar('T')

# Schemes of object stores, which fsspec reads.
STORES = ('s3', 'gs', 'gcs', 'az', 'abfs', 'hf', 'memory')
SCHEMES = (*STORES, 'http', 'https')
VARIABLE = 'MMVIDATTN_CACHE_GB'
DEFAULT_GB = 20.
# Longest time in seconds without an answer of the server.
LONGEST_WAIT = 300.
# Bytes of a request for a small part of a file.
BLOCK_SIZE = 2**16
FIRST_PAUSE, LONGEST_PAUSE = .5, 10.
# Errors that waiting does not remove.
PERMANENT = (FileNotFoundError, PermissionError, IsADirectoryError,
             NotADirectoryError, ImportError, ValueError, TypeError,
             NotImplementedError)
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
NO_CREDENTIALS = 'NoCredentialsError', 'PartialCredentialsError'

_held: dict[str, HeldFile] = {}


class RemoteError(ConnectionError):
    """A server has not answered for :data:`LONGEST_WAIT` seconds."""


def is_url(path: str | os.PathLike) -> bool:
    """Return True for a URL of a file, such as ``s3://bucket/a.mp4``."""
    scheme, found, _ = str(path).partition('://')
    return bool(found) and scheme in SCHEMES


def join_url(folder: str | os.PathLike, *names: str) -> str:
    """Join a folder or its URL with names, like ``os.path.join``."""
    joined = os.fspath(folder)
    for name in names:
        if is_url(name) or not is_url(joined):
            joined = name if is_url(name) else os.path.join(joined, name)
        else:
            joined = f'{joined.rstrip("/")}/{name}'
    return joined


def file_cache() -> FileCache:
    """Return the cache of the environment variables.

    Raises:
        ValueError: If ``MMVIDATTN_CACHE_GB`` is not a positive number.
    """
    text = os.environ.get(VARIABLE) or DEFAULT_GB
    try:
        size = float(text)
    except ValueError:
        size = 0
    if not 0 < size < float('inf'):
        raise ValueError(f'{VARIABLE} must be a positive number of gigabytes, '
                         f'got {text!r}')
    root = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return FileCache(Path(root, 'mmvidattn', 'files'), int(size * 1e9))


def local_file(path: str | os.PathLike, *, latest: bool = False,
               span: tuple[int, int] | None = None,
               name: str | None = None) -> HeldFile:
    """Return a local copy of a file.

    The copy is not deleted from the cache while the returned object exists::

        with local_file('s3://bucket/a.mp4') as path:
            video = open_video(path)

    Args:
        path: URL, or local file, which is returned itself.
        latest: Ask the server if the file has changed since it was copied.
            Defaults to False: a file never changes.
        span: Start and number of the bytes to copy, also of a local file.
            Defaults to the entire file.
        name: File name of the copy. Defaults to the name in the URL.

    Raises:
        FileNotFoundError: If the server does not have the file.
        ImportError: If the package for the URL is missing.
        PermissionError: If the server refuses access.
        RemoteError: If the server does not answer.
        ValueError: If the file is larger than the cache.
    """
    url = os.fspath(path)
    remote = is_url(url)
    if not remote and span is None:
        return HeldFile(Path(path))

    def size_of() -> int:
        return span[1] if span else ask(url, lambda fs, at: fs.size(at)) or 0

    def fill(part: Path) -> None:
        if span is None:
            ask(url, lambda fs, at: _download(fs, at, part))
        else:
            part.write_bytes(read_span(url, *span))

    key = f'{_identity(url)} {span}'
    if latest:
        key += f' {ask(url, _version)}'
    return file_cache().hold(key, safe_name(name or url), size_of, fill)


def local_path(path: str | os.PathLike) -> Path:
    """Return a local copy of the newest version of a file.

    The copy stays in the cache until the process ends. See :func:`local_file`
    for the errors.
    """
    if not is_url(path):
        return Path(path)
    # A forked process holds its files itself.
    key = f'{os.getpid()} {path}'
    if key not in _held:
        _held[key] = local_file(path, latest=True)
    return _held[key].path


def exists(path: str | os.PathLike) -> bool:
    """Return True if a file or folder exists; see :func:`local_file`."""
    if not is_url(path):
        return os.path.exists(path)
    return ask(str(path), lambda fs, at: fs.exists(at))


def read_span(path: str, start: int, size: int) -> bytes:
    """Read a part of a file, without the cache.

    Raises:
        ValueError: If the file ends before.
    """
    if is_url(path):
        data = ask(path, lambda fs, at: fs.cat_file(
            at, start=start, end=start + size))
    else:
        with open(path, 'rb') as file:
            file.seek(start)
            data = file.read(size)
    if len(data) != size:
        raise ValueError(f'{without_secrets(path)} ends at byte '
                         f'{start + len(data)}, expected {start + size}')
    return data


def read_with(path: str, function: Callable[[BinaryIO], T]) -> T:
    """Open a file without the cache, and return the result of a function.

    If the connection to the server of a URL fails, the function is called
    again.
    """
    def read(fs: Any, at: str) -> T:
        with fs.open(at, 'rb', block_size=BLOCK_SIZE) as file:
            return function(file)

    if is_url(path):
        return ask(path, read)
    with open(path, 'rb') as file:
        return function(file)


def derived_content(path: str, kind: str, make: Callable[[], bytes]) -> bytes:
    """Return data that is computed from a file, from the cache if possible.

    Args:
        path: Path or URL of the file. A file at a URL must never change.
        kind: Name of the data.
        make: Function that computes the data, if the cache lacks it.
    """
    made = []

    def size_of() -> int:
        made.append(make())
        return len(made[0])

    with file_cache().hold(
            f'{kind} {_identity(path)}', f'{safe_name(path)}.{kind}', size_of,
            lambda part: part.write_bytes(made[0])) as copy:
        return copy.read_bytes()


def _identity(path: str) -> str:
    if is_url(path):
        return path
    facts = os.stat(path)
    return f'{os.path.abspath(path)} {facts.st_size} {facts.st_mtime_ns}'


def safe_name(url: str) -> str:
    """Return a file name for a URL, which cannot lead out of a folder."""
    name = url.split('?')[0].rstrip('/').rpartition('/')[2]
    return re.sub(r'[^\w.-]', '_', name)[-100:].lstrip('.') or 'file'


def _version(fs: Any, at: str) -> list[str]:
    # The client may remember an older listing.
    fs.invalidate_cache()
    return sorted(map(str, fs.info(at).items()))


def _download(fs: Any, at: str, part: Path) -> None:
    size = fs.size(at)
    fs.get_file(at, str(part))
    found = part.stat().st_size
    if size is not None and found != size:
        raise OSError(f'the download ended after {found} of {size} bytes')


def ask(url: str, question: Callable[[Any, str], T]) -> T:
    """Call a function with the fsspec file system of a URL, and with the path.

    If the connection to the server fails, the call is repeated with growing
    pauses. See :func:`local_file` for the errors.
    """
    shown = without_secrets(url)
    begin, pause = time.monotonic(), FIRST_PAUSE
    # Some clients draw from Python's generator, on which augmentations depend.
    state = random.getstate()
    try:
        while True:
            try:
                return question(*_file_system(url))
            except Exception as error:
                if _is_permanent(error):
                    raise
                waited = time.monotonic() - begin
                if waited + pause > LONGEST_WAIT:
                    raise RemoteError(
                        f'{shown}: no answer for {waited:.0f} s; is the '
                        f'server available? {brief(error)}') from error
                if pause == FIRST_PAUSE:
                    print_log(f'{shown}: {brief(error)}; retrying for up to '
                              f'{LONGEST_WAIT:.0f} s', logger='current',
                              level=logging.WARNING)
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
    finally:
        random.setstate(state)


def _is_permanent(error: Exception) -> bool:
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        return True
    # ConnectionError's subclasses are temporary, also if a client derives
    # them from ValueError.
    return type(error).__name__ in NO_CREDENTIALS or isinstance(
        error, PERMANENT) and not isinstance(error, ConnectionError)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
        return url_to_fs(url)
    except ImportError as error:
        raise ImportError(
            f'{without_secrets(url)} needs another package ({error}): pip '
            'install "mmvidattn[remote]" for s3:// and http://, and also gcsfs'
            ' for gs://, adlfs for az://, huggingface_hub for hf://'
        ) from error
