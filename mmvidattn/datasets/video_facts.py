# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Length, rate and frame size of a video file."""
from pathlib import Path
from typing import NamedTuple

import decord


class VideoFacts(NamedTuple):
    """Frames, frames a second, and the size of a frame in pixels."""
    frames: int
    fps: float
    width: int
    height: int

    @property
    def duration(self) -> float:
        """In seconds."""
        return self.frames / self.fps


def read_facts(path: str | Path) -> VideoFacts:
    """Open a video that decord can read, and decode its first frame."""
    reader = decord.VideoReader(str(path), num_threads=1)
    height, width = reader[0].shape[:2]
    return VideoFacts(len(reader), float(reader.get_avg_fps()), width, height)
