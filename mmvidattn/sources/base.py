# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base classes of sources."""
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..utils.printable import brief

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

    Raises:
        ValueError: If ``fps`` is not a positive number.

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
        if not 0 < fps < math.inf:
            raise ValueError(f'{name}: fps must be a positive number, got '
                             f'{fps}')
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
