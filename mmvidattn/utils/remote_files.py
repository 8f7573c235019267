# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Local copies of files in object stores, on the web and on the Hub."""
import base64
import hashlib
import http.client
import os
import random
import re
import shutil
import urllib.error
import urllib.request
from functools import reduce
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mmengine.fileio import BaseStorageBackend, register_backend

from .files import replacing
from .printable import brief

STORES = ('s3', 'gs', 'gcs', 'az', 'abfs', 'hf', 'memory')
# Types of files that list the parts of a video.
PLAYLISTS = 'mpegurl', 'dash+xml'
# URLs in a text, and parts of their paths that name a login or a signature.
URL = re.compile(r'[a-zA-Z][\w+.-]*://\S+')
LOGIN = re.compile(
    r'(?i)(?<![a-z])((?:user|pass|pwd|token|key|sig|secret|auth)\w*)=[^/]*')
# Name of a checkpoint on the Hugging Face Hub.
HUB = 'hf://'
HUB_NAME = re.compile(
    r'hf://(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[0-9a-f]{40})'
    r'(/(?P<file>.+\.(safetensors|json)))?')


class RemoteError(ConnectionError):
    """A server cannot be reached, or does not send a file."""


def is_url(path: str | os.PathLike) -> bool:
    """Return True for a URL of a file, such as ``s3://bucket/a.mp4``."""
    scheme, found, _ = str(path).partition('://')
    return bool(found) and scheme in (*STORES, 'http', 'https')


def without_secrets(url: str) -> str:
    """Remove user, password, query and logins in the path from a URL.

    A password may contain any characters. Other text is unchanged.
    """
    scheme, found, rest = url.partition('://')
    if not found:
        return url
    start = rest.partition('/')[0]
    if '@' in start or ':' in start:
        # The end of a password with a slash is the last @.
        place = rest if ':' in start else start
        rest = rest[place.rfind('@') + 1:]
    path = LOGIN.sub(r'\1=***', re.split('[?#]', rest)[0])
    return f'{scheme}://{path}'


def join_url(folder: str | os.PathLike, name: str) -> str:
    """Join a folder or its URL with a name, like ``os.path.join``."""
    if is_url(folder) and not is_url(name):
        return f'{str(folder).rstrip("/")}/{name}'
    return name if is_url(name) else os.path.join(folder, name)


def local_path(path: str | os.PathLike, latest: bool = False) -> Path:
    """Return a local copy of a URL, or the path itself if it is local.

    Copies are in ``$XDG_CACHE_HOME/mmvidattn/files``, and renamed when they
    are complete. Processes that share fsspec's own ``filecache`` read partial
    files.

    Args:
        path: URL or path.
        latest: Ask the server if the file has changed since it was copied.

    Raises:
        FileNotFoundError: If the server does not have the file.
        ImportError: If the package for the URL is missing.
        RemoteError: If the server fails; PermissionError if it refuses.
    """
    if not is_url(path):
        return Path(path)
    url, shown = str(path), without_secrets(str(path))
    root = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache')
    name = re.sub(r'[^\w.-]', '_', shown.rpartition('/')[2])[-100:]
    # Clients draw from Python's generator, on which augmentations depend.
    state = random.getstate()
    try:
        from fsspec.core import url_to_fs
        files, at = url_to_fs(url)
        facts = files.info(at) if latest else {}
        key = hashlib.sha256(f'{url} {sorted(facts.items())}'.encode()
                             ).hexdigest()[:40]
        copy = root / 'mmvidattn/files' / key / (name.lstrip('.') or 'file')
        if not copy.is_file():
            with replacing(copy, shared=True) as part:
                files.get_file(at, str(part))
        return copy
    except ImportError as error:
        raise ImportError(f'{shown} ({error}): pip install "mmvidattn[remote]"'
                          ', and gcsfs for gs:// or adlfs for az://') from None
    except FileNotFoundError:
        raise FileNotFoundError(f'{shown} does not exist') from None
    except Exception as error:
        refused = isinstance(error, PermissionError)
        raise (PermissionError if refused else RemoteError)(
            f'cannot copy {shown}: '
            + URL.sub(lambda found: without_secrets(found[0]), brief(error))
        ) from None
    finally:
        random.setstate(state)


def download_file(url: str, folder: str | os.PathLike,
                  timeout: float = 60.) -> Path | None:
    """Copy a file from a web server to a folder.

    Args:
        url: URL with http or https, possibly with ``USER:PASSWORD@``.
        folder: Existing folder.
        timeout: Seconds that the server may take for a part of the file.

    Returns:
        Path of the copy; None if the URL may be a live stream, because the
        server sends no length or a playlist, or asks for a login (ffmpeg
        knows more kinds of it).

    Raises:
        OSError: If the server fails, or the connection ends early.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition('@')[2]
    # Some servers refuse the name of Python's client.
    request = urllib.request.Request(parts._replace(netloc=host).geturl(),
                                     headers={'User-Agent': 'mmvidattn'})
    if parts.username is not None:
        words = f'{unquote(parts.username)}:{unquote(parts.password or "")}'
        request.add_header('Authorization', 'Basic ' + base64.b64encode(
            words.encode()).decode())
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except http.client.HTTPException:
        # Some cameras and radio servers answer in another protocol.
        return None
    except urllib.error.HTTPError as error:
        if error.code == 401:
            return None
        raise
    with response:
        kind = response.headers.get_content_type()
        if response.length is None or kind.endswith(PLAYLISTS):
            return None
        size = response.length
        path = Path(folder, Path(parts.path).name or 'video')
        with replacing(path) as part:
            with part.open('wb') as file:
                shutil.copyfileobj(response, file)
            copied = part.stat().st_size
            if copied < size:
                raise RemoteError(
                    f'the connection ended after {copied} of {size} bytes')
    return path


def match_hub(name: str) -> re.Match:
    """Return the parts ``repo``, ``revision`` and ``file`` of a Hub name.

    Raises:
        ValueError: If the name has another form than :func:`hub_file` reads.
    """
    match = HUB_NAME.fullmatch(name)
    if match is None:
        raise ValueError(
            f'{name!r} must be hf://OWNER/MODEL@REVISION, optionally followed '
            'by /FILE.safetensors; REVISION is the 40 hexadecimal digits of a '
            "commit (on the page of the model under 'Files', 'History')")
    return match


def hub_file(name: str) -> Path:
    """Find a checkpoint in the cache of the Hub, or download it there.

    Args:
        name: ``hf://OWNER/MODEL@REVISION``, followed by ``/FILE`` for a file
            other than model.safetensors, such as config.json. The revision is
            a commit, because branches and tags can move.

    Raises:
        ValueError: See :func:`match_hub`. Files other than .safetensors and
            .json are refused, because they can run code.
        ImportError: If huggingface_hub is not installed.
        OSError: If the Hub does not have the file, or cannot be reached and
            the file is not in the cache.
    """
    match = match_hub(name)
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ImportError(f'{name} needs huggingface_hub: pip install '
                          'huggingface_hub') from error
    try:
        # hf_hub_download locks the file, so only one process downloads it.
        return Path(hf_hub_download(
            match['repo'], match['file'] or 'model.safetensors',
            revision=match['revision']))
    except (OSError, ValueError) as error:
        raise OSError(f'{name} cannot be loaded from the Hugging Face Hub: '
                      f'{brief(error)}') from error


@register_backend('mmvidattn', prefixes=STORES, force=True)
class RemoteBackend(BaseStorageBackend):
    """Backend that lets mmengine's functions read URLs of object stores.

    mmengine itself passes ``s3://`` to petrel_client, a package that is not
    published. Its users write ``petrel://``, or ``backend='petrel'``.
    """

    def get(self, filepath: str) -> bytes:
        """Read the newest version of a file."""
        return local_path(filepath, latest=True).read_bytes()

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """Read the newest version of a text file."""
        return self.get(filepath).decode(encoding)

    def exists(self, filepath: str) -> bool:
        """Return True if a file exists."""
        try:
            return local_path(filepath, latest=True).is_file()
        except FileNotFoundError:
            return False

    def join_path(self, filepath: str, *filepaths: str) -> str:
        """Join a URL with names below it."""
        return reduce(join_url, filepaths, filepath)
