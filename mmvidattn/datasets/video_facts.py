# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Video files of a folder, and the length, rate and size of a video file."""
import os
from pathlib import Path
from typing import NamedTuple

from ..utils.video_readers import VideoBackend, open_video

VIDEO_SUFFIXES = ('.avi', '.flv', '.m4v', '.mkv', '.mov', '.mp4', '.mpeg',
                  '.mpg', '.ts', '.webm', '.wmv')


class VideoFacts(NamedTuple):
    """Number of frames, frames per second, and frame size in pixels."""
    frames: int
    fps: float
    width: int
    height: int

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        return self.frames / self.fps


def list_videos(folder: str | Path) -> list[str]:
    """Return the video files in a folder and its subfolders, sorted.

    Raises:
        ValueError: If there are none.
    """
    root = str(Path(folder))
    videos = [f'{parent}{os.sep}{name}' for parent, _, names in os.walk(root)
              for name in names
              if os.path.splitext(name)[1].lower() in VIDEO_SUFFIXES]
    if not videos:
        raise ValueError(f'no videos in the folder {folder}; expected files '
                         f'with suffix {", ".join(VIDEO_SUFFIXES)}')
    if root == os.curdir:
        videos = [path[2:] for path in videos]
    # The order of paths: by folder, then by name.
    return sorted(videos, key=lambda path: path.replace(os.sep, '\0'))


def read_facts(path: str | Path,
               backend: VideoBackend | None = None) -> VideoFacts:
    """Open a video, decode its first frame, and return its facts.

    Args:
        path: Video.
        backend: Backend of :func:`~mmvidattn.utils.video_readers.open_video`.
    """
    reader = open_video(path, backend)
    height, width = reader[0].shape[:2]
    return VideoFacts(len(reader), reader.get_avg_fps(), width, height)
