# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Lookup of a video whose name differs between files."""
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import takewhile
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ..video_facts import VIDEO_SUFFIXES

# Label Studio adds eight digits to the name of an uploaded file.
UPLOAD = re.compile(r'[0-9a-f]{8}-(?=.)')


class VideoNames:
    """Lookup of videos by the names that other files give them.

    Paths are compared from their ends, without suffixes: ``/data/a/1.mp4``
    finds ``a/1``. A name may also be a URL or a Windows path, or have the
    prefix that Label Studio adds to uploaded files.

    Args:
        videos: Names, or paths.
        moved: Also find videos in other folders: ``/home/me/1.mp4`` finds
            ``a/1.mp4`` if no other video is called ``1``. By default, one path
            must end with the other.
    """

    def __init__(self, videos: Iterable[str], moved: bool = False) -> None:
        self._videos = set(videos)
        self._moved = moved
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for video in self._videos:
            self._by_stem[_stem(_path_of(video))].append(video)

    def find(self, name: str) -> str | None:
        """Return the video whose path has the longest common end.

        Of videos with equally long common ends, a video with the same suffix
        is preferred.

        Returns:
            Video, or None if no video matches.

        Raises:
            ValueError: If several videos match equally well.
        """
        if name in self._videos:
            return name
        path = _path_of(name)
        found = self._best(path)
        if not found and UPLOAD.match(path.name):
            found = self._best(
                path.with_name(UPLOAD.sub('', path.name, count=1)))
        if len(found) > 1:
            raise ValueError(
                f'the name {name} matches several videos: '
                f'{", ".join(sorted(found)[:3])}; write more of its path')
        return found[0] if found else None

    def _best(self, path: PurePosixPath) -> list[str]:
        ranks = {}
        for video in self._by_stem.get(_stem(path), ()):
            other = _path_of(video)
            depth = min(len(path.parts), len(other.parts)) - 1
            folders = zip(path.parts[-2::-1], other.parts[-2::-1])
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1],
                                              folders))
            if self._moved or common == depth:
                ranks[video] = common, path.suffix == other.suffix
        best = max(ranks.values(), default=None)
        return [video for video, rank in ranks.items() if rank == best]


def _path_of(name: str) -> PurePosixPath:
    """Return the path of a name, which may be a URL or a Windows path."""
    if '://' in name or name.startswith('/data/upload/'):
        url = urlsplit(name)
        name = unquote(url.netloc + url.path)
    return PurePosixPath(name.replace('\\', '/'))


def _stem(path: PurePosixPath) -> str:
    """Return the name of a video without the suffix."""
    return path.stem if path.suffix.lower() in VIDEO_SUFFIXES else path.name
