# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Video files and folders of frames."""
import re
from pathlib import Path

import cv2
import numpy as np

from ..utils.frame_times import ConstantRate
from ..utils.printable import brief
from ..utils.video_reader import open_video
from .base import MAX_GAP, RecordedSource

IMAGE_SUFFIXES = '.bmp', '.jpeg', '.jpg', '.png', '.webp'


class VideoFile(RecordedSource):
    """Source of a video file, at a constant rate (:class:`ConstantRate`).

    A frame that lasts longer than :data:`MAX_GAP` is shown once, and a gap
    follows.

    Args:
        path: Path of the file.
        realtime: Play it in real time.
        name: Name for users. Defaults to the path.

    Raises:
        ValueError: If the file cannot be opened; while iterating, if a frame
            cannot be read.
    """

    def __init__(self, path: str | Path, realtime: bool = False,
                 name: str | None = None) -> None:
        name = name or str(path)
        try:
            reader = open_video(path, num_threads=0)
            self._ticks = ConstantRate(reader)
            self.num_frames = len(self._ticks)
            self._decoded = reader.frames()
        except Exception as error:
            raise ValueError(f'cannot open {name} as a video: {brief(error)}'
                             ) from error
        numbers = self._ticks.frames(np.arange(self.num_frames))
        starts = np.append(np.flatnonzero(np.diff(numbers, prepend=-1)),
                           self.num_frames)
        longest = MAX_GAP * self._ticks.fps
        # First tick of each gap, and the first tick after it.
        self._gaps = [(start + 1, stop) for start, stop
                      in zip(starts.tolist(), starts[1:].tolist())
                      if stop - start > longest]
        self._joins = reader.table.joins
        # Number of the next frame to decode.
        self._next = 0
        super().__init__(name, self._ticks.fps, realtime)

    def _read(self, index: int) -> np.ndarray:
        self.jumped_back = False
        while self._next <= self._ticks.frames(index):
            self._image = next(self._decoded)
            self.jumped_back |= self._next in self._joins
            self._next += 1
            self._alive()
        return self._image

    def _next_index(self, index: int) -> int:
        return next((stop for start, stop in self._gaps
                     if start <= index + 1 < stop), index + 1)


class FrameFolder(RecordedSource):
    """Source of a folder of images, ordered by the numbers in their names."""

    def __init__(self, path: str | Path, fps: float,
                 realtime: bool = False) -> None:
        self._paths = sorted(
            (p for p in Path(path).iterdir()
             if p.suffix.lower() in IMAGE_SUFFIXES), key=_numbers)
        if not self._paths:
            raise ValueError(f'no frames in the folder {path}; names must end '
                             f'with one of {", ".join(IMAGE_SUFFIXES)}')
        self.num_frames = len(self._paths)
        super().__init__(str(path), fps, realtime)

    def _read(self, index: int) -> np.ndarray:
        path = self._paths[index]
        image = cv2.imread(str(path))
        if image is None:
            raise ValueError(f'{path.name} could not be read')
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _numbers(path: Path) -> list[int | str]:
    """Return a key that sorts frame 10 after frame 9."""
    return [int(part) if part.isdecimal() else part
            for part in re.split(r'(\d+)', path.name)]
