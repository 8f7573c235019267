# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Names of one video in several files."""
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ..video_facts import VIDEO_SUFFIXES

# Label Studio adds eight digits to the name of an uploaded file.
UPLOAD = re.compile(r'[0-9a-f]{8}-(?=.)')


class VideoNames:
    """Names of videos, to be found by the names of other files.

    Paths are compared from their ends. A name may be a URL or a Windows path,
    have Label Studio's prefix of uploaded files, or lack the suffix:
    ``/data/a/1.mp4`` is ``a/1``.

    Args:
        videos: Names, or paths.
        moved: Allow other folders: ``/home/me/1.mp4`` is ``a/1.mp4`` if no
            other video is called ``1``. Otherwise, one of both paths must end
            with the other.
    """

    def __init__(self, videos: Iterable[str], moved: bool = False) -> None:
        self._videos = set(videos)
        self._moved = moved
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for video in self._videos:
            self._by_stem[_stem(_path_of(video))].append(video)

    def find(self, name: str) -> str | None:
        """Return the video with the longest common end, None without any.

        Of two equal ones, the video with the same suffix is returned.

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
            raise ValueError(f'the name {name} matches several videos: '
                             f'{", ".join(sorted(found)[:3])}; write more of '
                             'its path')
        return found[0] if found else None

    def _best(self, path: PurePosixPath) -> list[str]:
        ranks = {}
        for video in self._by_stem.get(_stem(path), ()):
            other = _path_of(video)
            depth = min(len(path.parts), len(other.parts)) - 1
            common = _common_end(path.parent.parts, other.parent.parts)
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


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the equal parts from the end."""
    length = 0
    for a, b in zip(reversed(one), reversed(other)):
        if a != b:
            break
        length += 1
    return length
