# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Disk cache of clip features, keyed by video, pipeline and weights."""
import hashlib
import inspect
import json
import logging
import math
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
import torch
from mmengine.logging import print_log
from safetensors import SafetensorError
from torch import Tensor

from .arguments import Positive, check_arguments
from .files import hash_file, write_atomically

# Part of every key. Increase it after a change of code that changes features.
FORMAT = 1
SETTINGS, VIDEOS = 'settings.json', 'videos'
DTYPES = dict(float32=torch.float32, float16=torch.float16)


def digest_of(value: Any) -> str:
    """Return the SHA-256 of plain values, which is reproducible."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def weights_digest(state_dict: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of tensors and their names."""
    digest = hashlib.sha256()
    for name, value in sorted(state_dict.items()):
        digest.update(f'{name} {value.dtype} {[*value.shape]}\n'.encode())
        value = value.detach().cpu().contiguous().reshape(-1)
        digest.update(value.view(torch.uint8).numpy())
    return digest.hexdigest()


def to_json(value: Any, name: str) -> Any:
    """Convert a value to JSON types.

    Raises:
        ValueError: If JSON cannot represent a part of the value, such as a
            transform that is already built.
    """
    if isinstance(value, Mapping):
        return {str(key): to_json(one, f'{name}.{key}')
                for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [to_json(one, f'{name}.{i}') for i, one in enumerate(value)]
    if inspect.isclass(value):
        return f'{value.__module__}.{value.__qualname__}'
    if hasattr(value, 'tolist'):
        return to_json(value.tolist(), name)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f'cached features need plain options, but {name} is a '
                     f'{type(value).__name__}')


class FeatureFolder:
    """Cache folder for one pipeline and one frozen network.

    The folder is ``<root>/<key>/``; the key is a hash of the settings. It
    contains ``settings.json`` and one file per clip. ``<root>/videos/`` caches
    the hashes of videos. Any number of processes may share a root, because
    files are written under temporary names and renamed. Opening a folder
    updates its time of last use.

    Args:
        root: Root of all cache folders.
        settings: All settings that the features depend on, in plain types.

    Raises:
        ValueError: If a setting is not of a plain type.
    """

    def __init__(self, root: str | Path, settings: Mapping[str, Any]) -> None:
        settings = to_json(dict(settings, format=FORMAT), 'settings')
        self.root = Path(root)
        self.path = self.root / digest_of(settings)[:16]
        self._digests: dict[str, tuple[list, str]] = {}
        if not (self.path / SETTINGS).is_file():
            write_atomically(
                self.path / SETTINGS, json.dumps(settings, indent=1),
                shared=True)
        os.utime(self.path / SETTINGS)

    def file_of(self, video: str, **clip: Any) -> Path:
        """Return the path for the features of a clip. It may not exist.

        Args:
            video: Video file of the clip.
            **clip: Values in plain types that identify the clip in the video,
                such as the segment.

        Raises:
            OSError: If the video cannot be read.
            ValueError: If a value is not of a plain type.
        """
        clip = to_json(clip, 'sample')
        name = digest_of([self._video_digest(video), clip])[:32]
        return self.path / name[:2] / f'{name}.safetensors'

    def _video_digest(self, video: str) -> str:
        """Return the SHA-256 of a video's content, equal for each copy.

        A file is read again only if its size or modification time changes.
        """
        stat = os.stat(video)
        stamp = [os.path.realpath(video), stat.st_size, stat.st_mtime_ns]
        known = self._digests.get(video)
        if known is not None and known[0] == stamp:
            return known[1]
        note = self.root / VIDEOS / f'{digest_of(stamp)[:32]}.txt'
        try:
            text = note.read_text('ascii')
        except (OSError, ValueError):
            text = ''
        if len(text) != 64:
            text = hash_file(video)
            write_atomically(note, text, to_disk=False, shared=True)
        self._digests[video] = stamp, text
        return text


@check_arguments
class FeatureWriter:
    """Writer of features, with counts of cache hits and misses.

    Args:
        root: Root of all cache folders.
        dtype: 'float32', or 'float16', which rounds and takes half the space.
            Defaults to 'float32'.
        max_gb: Limit of all files under ``root`` in gigabytes (10^9 bytes).
            Once it is reached, no more features are written, and one warning
            is logged. Defaults to no limit.

    Attributes:
        num_read: Clips whose features were in the cache.
        num_computed: Clips whose features were computed.
        size: Known size of all files under ``root`` in bytes. Other processes
            may have added files.
    """

    def __init__(self,
                 root: str | Path,
                 dtype: Literal['float32', 'float16'] = 'float32',
                 max_gb: Positive | None = None) -> None:
        self.root = Path(root)
        self.dtype = DTYPES[dtype]
        self.max_size = math.inf if max_gb is None else max_gb * 1e9
        self.size = self.num_read = self.num_computed = 0
        self._is_full = False

    def measure(self) -> list[dict[str, Any]]:
        """Update ``size``; return :func:`describe_folders` of the root."""
        folders = describe_folders(self.root)
        self.size = sum(one['size'] for one in folders)
        return folders

    def take_counts(self) -> tuple[int, int]:
        """Return ``num_read`` and ``num_computed``, and reset both to 0."""
        counts = self.num_read, self.num_computed
        self.num_read = self.num_computed = 0
        return counts

    def round(self, features: Tensor) -> Tensor:
        """Round features to the dtype on disk; their dtype stays.

        Raises:
            ValueError: If a feature is too large for float16.
        """
        rounded = features.to(self.dtype).to(features.dtype)
        if self.dtype == torch.float16 and (
                rounded.isinf() & features.isfinite()).any():
            raise ValueError('the features are too large for float16: use '
                             "dtype='float32'")
        return rounded

    def write(self, path: str | Path, features: Tensor) -> None:
        """Write the features of a clip, unless the cache is full."""
        content = features.detach().to('cpu', self.dtype).contiguous()
        check = torch.tensor(_checksum(content))
        content = safetensors.torch.save(
            dict(features=content, checksum=check))
        if self.size + len(content) > self.max_size:
            if not self._is_full:
                self._is_full = True
                print_log(
                    f'{self.root} is full, {megabytes(self.size)}: features '
                    'that are not cached yet are computed in each epoch; '
                    'increase max_gb',
                    logger='current', level=logging.WARNING)
            return
        write_atomically(path, content, to_disk=False, shared=True)
        self.size += len(content)


def read_features(path: str | Path) -> Tensor | None:
    """Read the features of a clip as float32.

    Returns:
        Features. None if the file is missing. A damaged file is deleted with a
        warning, and None is returned.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        tensors = safetensors.torch.load(content)
        if int(tensors['checksum']) != _checksum(tensors['features']):
            raise ValueError('wrong checksum')
        return tensors['features'].float()
    except (SafetensorError, KeyError, ValueError) as error:
        print_log(f'{path} is damaged ({error}) and computed again',
                  logger='current', level=logging.WARNING)
        path.unlink(missing_ok=True)
        return None


def describe_folders(root: str | Path) -> list[dict[str, Any]]:
    """List the cache folders under a root, most recently used first.

    Returns:
        For each folder: ``path``, ``files``, ``size`` in bytes,
        ``unused_days`` and ``settings``.
    """
    folders = []
    for path in Path(root).glob(f'*/{SETTINGS}'):
        try:
            settings = json.loads(path.read_text('utf-8'))
        except ValueError:
            settings = {}
        sizes = [file.stat().st_size
                 for file in path.parent.glob('*/*.safetensors')]
        days = (time.time() - path.stat().st_mtime) / 86400
        folders.append(dict(
            path=path.parent, files=len(sizes), size=sum(sizes),
            unused_days=days, settings=settings))
    return sorted(folders, key=lambda one: one['unused_days'])


def megabytes(size: int) -> str:
    """Format a number of bytes in megabytes."""
    return f'{size / 1e6:,.2f} MB'


def _checksum(features: Tensor) -> int:
    return zlib.crc32(features.reshape(-1).view(torch.uint8).numpy())
