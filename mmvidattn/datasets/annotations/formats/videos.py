# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Lookup of videos by the names that annotation programs give."""
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from ....utils.printable import brief
from ...video_facts import VIDEO_SUFFIXES, read_facts
from .base import VideoInfo

# Label Studio adds eight digits to the name of an uploaded file, replaces
# blanks, and removes special characters.
UPLOAD = re.compile(r'[0-9a-f]{8}-(?=.)')
SPECIAL = re.compile(r'[^-\w.]')
# Prefix of the files of ActivityNet, whose lists omit it.
PREFIX = 'v_'


class VideoNames:
    """Lookup of videos by the names that other files give them.

    Paths are compared from their ends, without suffixes: ``/data/a/1.mp4``
    finds ``a/1``. A name may also be a URL or a Windows path, be changed by an
    upload to Label Studio, or differ by the prefix ``v_`` of ActivityNet.

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
        self._by_upload: dict[str, list[str]] = defaultdict(list)
        for video in self._videos:
            path = _path_of(video)
            self._by_stem[_stem(path)].append(video)
            self._by_upload[_uploaded(path)].append(video)

    def find(self, name: str) -> str | None:
        """Return the video whose path has the longest common end, or None.

        Of videos with equally long common ends, a video with the same suffix
        is preferred.

        Raises:
            ValueError: If several videos match equally well.
        """
        if name in self._videos:
            return name
        path = _path_of(name)
        found = self._best(path)
        if not found and UPLOAD.match(path.name):
            original = path.with_name(UPLOAD.sub('', path.name, count=1))
            found = self._by_upload.get(_uploaded(original), [])
            found = [video for video in found
                     if _path_of(video).suffix == path.suffix] or found
        if not found and path.name:
            found = self._best(path.with_name(
                path.name.removeprefix(PREFIX)
                if path.name.startswith(PREFIX) else PREFIX + path.name))
        if len(found) > 1:
            raise ValueError(
                f'the name {name} matches several videos: '
                f'{", ".join(sorted(found)[:3])}; write more of its path')
        return found[0] if found else None

    def _best(self, path: PurePosixPath) -> list[str]:
        """Return the videos whose path has the longest common end."""
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


class VideoFolder(VideoNames):
    """Videos of a folder and its subfolders.

    :meth:`find` returns paths relative to the folder, also of moved videos.

    Args:
        root: The folder.

    Attributes:
        names: Paths of all videos, relative to the folder.

    Raises:
        ValueError: If the folder does not exist.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise ValueError(f'the folder of videos {root} does not exist')
        self.names = sorted(
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob('*')
            if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file())
        super().__init__(self.names, moved=True)
        self._infos: dict[str, VideoInfo] = {}

    def info(self, name: str) -> VideoInfo:
        """Return the facts of a video that :meth:`find` returned.

        Raises:
            ValueError: If the video cannot be read.
        """
        if name not in self._infos:
            try:
                facts = read_facts(self.root / name)
            except Exception as error:
                raise ValueError(f'cannot read the video {self.root / name}: '
                                 f'{brief(error)}') from error
            self._infos[name] = VideoInfo(
                facts.fps, facts.duration, facts.width, facts.height)
        return self._infos[name]


def _path_of(name: str) -> PurePosixPath:
    """Return the path of a name, which may be a URL or a Windows path."""
    if '://' in name or name.startswith('/data/upload/'):
        url = urlsplit(name)
        name = unquote(url.netloc + url.path)
    return PurePosixPath(name.replace('\\', '/'))


def _stem(path: PurePosixPath) -> str:
    """Return the name of a video without the suffix."""
    return path.stem if path.suffix.lower() in VIDEO_SUFFIXES else path.name


def _uploaded(path: PurePosixPath) -> str:
    """Return the name of a video after an upload, without the suffix."""
    return SPECIAL.sub('', _stem(path).replace(' ', '_'))
