# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Names of one video in several files."""
from collections.abc import Iterable
from pathlib import PurePosixPath

from ..video_facts import VIDEO_SUFFIXES


def find_video(name: str, videos: Iterable[str]) -> str:
    """Return the video whose path ends like a name, or else the name.

    Suffixes of video files do not matter: ``/data/a/1.mp4`` is ``a/1``.

    Args:
        name: Name, or path.
        videos: Names, or paths.

    Raises:
        ValueError: If several videos match.
    """
    if name in videos:
        return name
    parts = _parts(name)
    found = []
    for video in videos:
        other = _parts(video)
        length = min(len(parts), len(other))
        if length and parts[-length:] == other[-length:]:
            found.append(video)
    if len(found) > 1:
        raise ValueError(f'the name {name} matches several videos: '
                         f'{", ".join(found[:3])}; write more of its path')
    return found[0] if found else name


def _parts(video: str) -> tuple[str, ...]:
    path = PurePosixPath(video.replace('\\', '/'))
    if path.suffix.lower() in VIDEO_SUFFIXES:
        path = path.with_suffix('')
    return path.parts
