# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Length, rate and frame size of a video file."""
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
