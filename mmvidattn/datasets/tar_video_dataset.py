# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos in tar files, in the format of WebDataset."""
import json
import re
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

from mmaction.registry import DATASETS

from ..utils.arguments import check_arguments
from ..utils.printable import brief
from ..utils.remote_files import derived_content, join_url, read_with
from .broken_files.find_fault import find_fault
from .broken_files.guarded_video_dataset import GuardedVideoDataset
from .remote_videos import hold_video
from .video_facts import VIDEO_SUFFIXES

# Key of a sample, and suffix of a file: up to and from the first dot.
MEMBER = re.compile(r'((?:.*/)?[^./][^./]*)(\.[^/]+)')
LABELS = '.cls', '.json'
# A label is a number, or a few in JSON.
MAX_LABEL = 2**20
NUM_THREADS = 16
# Size of a header. Headers of zeros end a tar file.
BLOCK = 512


@DATASETS.register_module()
@check_arguments
class TarVideoDataset(GuardedVideoDataset):
    """Videos in tar files (shards), in the format of WebDataset.

    The files of a sample have the same name up to the first dot, such as
    ``clip7.mp4`` and ``clip7.cls``. A sample has one video, and one label:
    ``.cls`` is the number of the class, and ``.json`` has it under ``label``
    (with ``multi_class``, a list).

    The position of each file in a shard is read once from the headers, and
    stored in the cache. Later, only the bytes of the selected videos are read.
    mmengine's samplers therefore shuffle all samples of all shards, split them
    over processes and workers, and resume exactly, as with single files.

    Because positions are cached, never change a shard; write the changed shard
    under another name.

    Args:
        shards: Path or URL of a shard, with any number of ranges and lists in
            braces, such as ``train-{000..099}.tar``; or a sequence of these.
            Relative to ``data_root``.
        pipeline: Transforms.
        kwargs: Other arguments of :class:`GuardedVideoDataset`.

    Raises:
        ValueError: If a file is not a tar file, or a sample lacks a video or
            a valid label.
    """

    def __init__(self, shards: str | Sequence[str], pipeline: list,
                 **kwargs: Any) -> None:
        self.shards = [
            shard for one in ([shards] if isinstance(shards, str) else shards)
            for shard in expand_braces(one)]
        super().__init__('', pipeline, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Read the positions of all videos, and their labels."""
        if self.multi_class and self.num_classes is None:
            raise ValueError('multi_class needs num_classes')
        shards = [join_url(self.data_root or '', shard)
                  for shard in self.shards]
        with ThreadPoolExecutor(NUM_THREADS) as pool:
            samples = pool.map(read_samples, shards)
        return [
            dict(filename=f'{shard}/{name}', span=(shard, start, size),
                 label=self._check_label(label, f'{shard}/{name}'))
            for shard, found in zip(shards, samples)
            for name, start, size, label in found]

    def _check_label(self, label: Any, where: str) -> int | list[int]:
        numbers = label if self.multi_class else [label]
        limit = float('inf') if self.num_classes is None else self.num_classes
        if not isinstance(numbers, list) or not all(
                type(x) is int and 0 <= x < limit for x in numbers):
            raise ValueError(
                f'{where}: label must be '
                + ('a list of numbers' if self.multi_class else 'a number')
                + f' from 0 to {limit - 1:g}, got {label!r}')
        return label

    def _find_fault(self, info: dict) -> Exception | None:
        with hold_video(info) as path:
            return find_fault(str(path), backend=self._video_backend())


def expand_braces(pattern: str) -> list[str]:
    """Expand ranges ``{000..099}`` and lists ``{a,b}`` as a shell does."""
    match = re.search(r'{([^{}]*)}', pattern)
    if match is None:
        return [pattern]
    bounds = re.fullmatch(r'(\d+)\.\.(\d+)', match[1])
    items = match[1].split(',')
    if bounds is not None:
        first, last = bounds.groups()
        width = max(map(len, bounds.groups())) if any(
            len(x) > 1 and x[0] == '0' for x in bounds.groups()) else 0
        step = 1 if int(first) <= int(last) else -1
        items = [f'{i:0{width}}' for i in range(int(first), int(last) + step,
                                                step)]
    return [pattern[:match.start()] + item + rest for item in items
            for rest in expand_braces(pattern[match.end():])]


def read_samples(shard: str) -> list[tuple[str, int, int, Any]]:
    """Return the samples of a shard, in its order.

    Args:
        shard: Path or URL of a tar file.

    Returns:
        Name of the video, its first byte, its number of bytes, and the label
        for each sample.

    Raises:
        ValueError: If it is not a tar file, or a sample lacks a video or a
            label.
    """
    content = derived_content(
        shard, 'samples', lambda: json.dumps(read_with(
            shard, lambda file: _scan(file, shard))).encode())
    return list(map(tuple, json.loads(content)))


def _scan(file: BinaryIO, shard: str) -> list[tuple[str, int, int, Any]]:
    samples: dict[str, dict[str, Any]] = {}
    try:
        with tarfile.open(fileobj=file, mode='r:') as tar:
            for member in tar:
                _add(samples, tar, member, shard)
            file.seek(tar.offset)
            if file.read(BLOCK) != bytes(BLOCK):
                raise tarfile.ReadError('it is cut off')
    except tarfile.TarError as error:
        raise ValueError(f'{shard} is not a complete tar file: '
                         f'{brief(error)}') from error
    for key, parts in samples.items():
        label = next((parts[suffix] for suffix in LABELS if suffix in parts),
                     None)
        if 'video' not in parts or label is None:
            raise ValueError(
                f'{shard}: {key} lacks a '
                + (f'label in {" or ".join(LABELS)}' if 'video' in parts else
                   f'video ({", ".join(VIDEO_SUFFIXES)})'))
        parts['label'] = label
    if not samples:
        raise ValueError(f'{shard} has no videos')
    return [(*parts['video'], parts['label']) for parts in samples.values()]


def _add(samples: dict[str, dict[str, Any]], tar: tarfile.TarFile,
         member: tarfile.TarInfo, shard: str) -> None:
    """Add a file of a shard to its sample."""
    match = MEMBER.fullmatch(member.name)
    if not member.isreg() or match is None:
        return
    key, suffix = match[1], match[2].lower()
    if suffix in VIDEO_SUFFIXES:
        kind, part = 'video', (member.name, member.offset_data, member.size)
    elif suffix in LABELS:
        kind, part = suffix, _read_label(tar, member, shard)
    else:
        return
    parts = samples.setdefault(key, {})
    if kind in parts:
        raise ValueError(f'{shard}: {key} must have one {kind}, got '
                         f'{member.name} as well')
    parts[kind] = part


def _read_label(tar: tarfile.TarFile, member: tarfile.TarInfo,
                shard: str) -> Any:
    text = tar.extractfile(member).read(MAX_LABEL)
    try:
        label = json.loads(text)
    except ValueError:
        raise ValueError(f'{shard}/{member.name} must be '
                         + ('a number' if member.name.endswith('.cls') else
                            'JSON') + f', got {text[:50]!r}') from None
    if member.name.lower().endswith('.json'):
        label = label.get('label') if isinstance(label, dict) else None
    return label
