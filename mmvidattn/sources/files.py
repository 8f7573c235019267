# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of sources, and sources of video files and folders of frames."""
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..datasets.video_facts import list_images, read_image
from ..utils.arguments import Positive, check_arguments
from ..utils.frame_times import ConstantRate
from ..utils.printable import brief
from ..utils.video_reader import VideoReader

# Longest gap in seconds between two frames that a recording fills with the
# first one, and longest gap that an action may span.
MAX_GAP = 10.


@dataclass(frozen=True)
class Frame:
    """A frame of a source.

    Attributes:
        image: RGB image, ``(H, W, 3)``, uint8.
        index: Number of the frame at the source's rate, from 0. Numbers of
            frames that a live source missed are skipped.
        decode_time: Seconds that reading took.
        at: Arrival time, from ``time.monotonic()``.
        jumped_back: True if the time stamps jumped back before this frame.
    """
    image: np.ndarray
    index: int
    decode_time: float
    at: float
    jumped_back: bool = False


class Source:
    """Base class of sources: iterating over one yields its frames in order.

    A source can be iterated over once.

    Args:
        name: Name for users.
        fps: Frames per second.
        live: True if frames arrive in real time, independent of the reader.

    Attributes:
        status: 'running', 'ended', or a description of a problem.
        patience: Maximum seconds until the next frame.
        recorded: True if frames can be read again.
        first_frame: Index of the first frame (:meth:`start_at`).
    """
    patience = 60.
    recorded = False
    first_frame = 0

    def __init__(self, name: str, fps: float, live: bool) -> None:
        self.name = name
        self.fps = fps
        self.live = live
        self.status = 'running'
        self._stopped = threading.Event()
        self._alive()

    def __iter__(self) -> Iterator[Frame]:
        try:
            self._alive()
            # A recording skips earlier frames, and needs no shift.
            shift = 0 if self.recorded else self.first_frame
            for frame in self._frames():
                yield replace(frame, index=frame.index + shift)
                self._alive()
            self.status = 'ended'
        except Exception as error:
            self.status = f'failed: {error}'
            raise

    def start_at(self, frame: int) -> None:
        """Start with this frame index.

        A recording skips the frames before it. For other sources, the first
        frame gets this index.
        """
        self.first_frame = frame

    def stop(self) -> None:
        """End the iteration soon; may be called from any thread."""
        self._stopped.set()

    def check_alive(self) -> None:
        """Check that the source does not hang.

        Raises:
            ValueError: If a frame has taken longer than ``patience``.
        """
        if time.monotonic() - self._last_sign > self.patience:
            raise ValueError(f'{self.name} hangs: no frame came in '
                             f'{self.patience:g} s')

    def _alive(self, wait: float = 0.) -> None:
        """Record that the source works; allow it to wait some seconds now."""
        self._last_sign = time.monotonic() + max(0., wait)

    def _frames(self) -> Iterator[Frame]:
        raise NotImplementedError


class RecordedSource(Source):
    """Source of a recording, read as fast as possible or in real time.

    Args:
        name: Name for users.
        fps: Frames per second.
        realtime: Play it in real time, like a camera.

    Raises:
        ValueError: While iterating, if a frame cannot be read.
    """
    recorded = True
    num_frames: int
    #: True if the time stamps jumped back before the latest frame.
    jumped_back = False

    def _frames(self) -> Iterator[Frame]:
        first, index = None, self.first_frame
        while index < self.num_frames:
            start = time.monotonic()
            try:
                image = self._read(index)
            except Exception as error:
                raise ValueError(
                    f'{self.name} breaks off: {index} of {self.num_frames} '
                    f'frames could be read ({brief(error)})') from error
            end = time.monotonic()
            if first is None:
                # Start the clock now, because seeking the first frame may take
                # long.
                first = end - index / self.fps
            if self.live:
                wait = first + index / self.fps - end
                self._alive(wait)
                self._stopped.wait(wait)
            if self._stopped.is_set():
                return
            yield Frame(image, index, end - start, time.monotonic(),
                        self.jumped_back)
            index = self._next_index(index)

    def _read(self, index: int) -> np.ndarray:
        """Return the image of a frame, RGB ``(H, W, 3)``.

        Indices increase, and may have gaps.
        """
        raise NotImplementedError

    def _next_index(self, index: int) -> int:
        """Return the index after this one. It skips a gap."""
        return index + 1


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
            reader = VideoReader(path, num_threads=0)
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


@check_arguments
class FrameFolder(RecordedSource):
    """Source of a folder of images, ordered by the numbers in their names."""

    def __init__(self, path: str | Path, fps: Positive,
                 realtime: bool = False) -> None:
        self._paths = list_images(path)
        self.num_frames = len(self._paths)
        super().__init__(str(path), fps, realtime)

    def _read(self, index: int) -> np.ndarray:
        return read_image(self._paths[index])
