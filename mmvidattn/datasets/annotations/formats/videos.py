# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos of a folder, found by the names that annotation programs give."""
import re
from collections import defaultdict
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from ...video_facts import VIDEO_SUFFIXES, read_facts
from .base import VideoInfo

# Label Studio adds eight digits to the name of an uploaded file.
UPLOAD = re.compile(r'[0-9a-f]{8}-(?=.)')


class VideoFolder:
    """Videos of a folder and its subfolders.

    Args:
        root: The folder.

    Raises:
        ValueError: If the folder does not exist.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise ValueError(f'videos must be a folder, got {root}')
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.root.rglob('*')):
            if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file():
                name = path.relative_to(self.root).as_posix()
                self._by_stem[path.stem].append(name)
        self._infos: dict[str, VideoInfo] = {}

    def find(self, name: str) -> str | None:
        """Return the path of a video, relative to the folder.

        Paths are compared from their ends, so that the name may be a URL, have
        other folders, or lack a suffix, as in ActivityNet's files.

        Args:
            name: Name in an annotation file.

        Raises:
            ValueError: If several videos match equally well.
        """
        path = PurePosixPath(_path_of(name))
        found = self._match(path)
        if not found and UPLOAD.match(path.name):
            found = self._match(path.with_name(UPLOAD.sub('', path.name, 1)))
        if len(found) > 1:
            raise ValueError(
                f'the name {name} matches several videos of {self.root}: '
                f'{", ".join(found[:3])}')
        return found[0] if found else None

    def _match(self, path: PurePosixPath) -> list[str]:
        is_video = path.suffix.lower() in VIDEO_SUFFIXES
        stem = path.stem if is_video else path.name
        candidates = [
            name for name in self._by_stem.get(stem, ())
            if not is_video or name.endswith(path.suffix)]
        lengths = {name: _common_end(path.parts, PurePosixPath(name).parts)
                   for name in candidates}
        best = max(lengths.values(), default=0)
        return [name for name, length in lengths.items() if length == best]

    def info(self, name: str) -> VideoInfo:
        """Return the facts of a video that :meth:`find` returned.

        Raises:
            ValueError: If the video cannot be read.
        """
        if name not in self._infos:
            try:
                facts = read_facts(self.root / name)
            except Exception as error:
                reason = str(error).strip().partition('\n')[0]
                raise ValueError(
                    f'cannot read the video {self.root / name}: '
                    f'{reason or type(error).__name__}') from error
            self._infos[name] = VideoInfo(
                facts.fps, facts.duration, facts.width, facts.height)
        return self._infos[name]


def _path_of(name: str) -> str:
    """Return the path of a name, which may be a URL or a Windows path."""
    if '://' in name or name.startswith('/data/'):
        name = unquote(urlsplit(name).path)
    return name.replace('\\', '/')


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the equal parts before the last one, from the end."""
    length = 0
    for a, b in zip(one[-2::-1], other[-2::-1]):
        if a != b:
            break
        length += 1
    return length
