# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos of a folder, found by the names that annotation programs give."""
from pathlib import Path

from ...video_facts import VIDEO_SUFFIXES, read_facts
from ..video_names import VideoNames
from .base import VideoInfo


class VideoFolder:
    """Videos of a folder and its subfolders.

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
            raise ValueError(f'videos must be a folder, got {root}')
        self.names = sorted(
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob('*')
            if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file())
        self._names = VideoNames(self.names, moved=True)
        self._infos: dict[str, VideoInfo] = {}

    def find(self, name: str) -> str | None:
        """Return the path, relative to the folder, that a name refers to.

        Names are compared as in :class:`VideoNames`.

        Raises:
            ValueError: If several videos match equally well.
        """
        return self._names.find(name)

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
