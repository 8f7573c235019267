# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What a source of frames is."""
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..utils.printable import brief


@dataclass(frozen=True)
class Frame:
    """A frame of a source.

    Attributes:
        image: RGB, ``(H, W, 3)``, uint8.
        index: Its number at the source's rate, from 0. A live source leaves
            out those that it did not get in time.
        decode_time: Seconds it took to read.
        at: When it arrived, by ``time.monotonic()``.
    """
    image: np.ndarray
    index: int
    decode_time: float
    at: float


class Source:
    """Frames in order; iterate over it once.

    Args:
        name: Name for users.
        fps: Frames a second.
        live: Whether it goes on even if it is not read.

    Attributes:
        status: 'running', 'ended', or a line about what is wrong.
        patience: Seconds that the next frame may take.
        recorded: Whether its frames can be read again.
        first_frame: Number of the first frame (:meth:`start_at`).
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
            # A recording leaves out what comes before.
            shift = 0 if self.recorded else self.first_frame
            for frame in self._frames():
                yield replace(frame, index=frame.index + shift)
                self._alive()
            self.status = 'ended'
        except Exception as error:
            self.status = f'failed: {error}'
            raise

    def start_at(self, frame: int) -> None:
        """Begin with this frame: a recording leaves out those before it, and
        of another source the first frame gets this number."""
        self.first_frame = frame

    def stop(self) -> None:
        """End the iteration soon; from any thread."""
        self._stopped.set()

    def check_alive(self) -> None:
        """Check that a read which is going on may still return.

        Raises:
            ValueError: If it has taken longer than ``patience``.
        """
        if time.monotonic() - self._last_sign > self.patience:
            raise ValueError(f'{self.name} hangs: no frame came in '
                             f'{self.patience:g} s')

    def _alive(self, wait: float = 0.) -> None:
        """Note that the source does not hang, nor will for some seconds."""
        self._last_sign = time.monotonic() + max(0., wait)

    def _frames(self) -> Iterator[Frame]:
        raise NotImplementedError


class RecordedSource(Source):
    """A recording, played as fast as it is read, or at its own speed.

    Args:
        name: Name for users.
        fps: Frames a second.
        realtime: Play it at its own speed, as a camera would.

    Raises:
        ValueError: While it is read, if a frame cannot be.
    """
    recorded = True
    num_frames: int

    def _frames(self) -> Iterator[Frame]:
        first = None
        for index in range(self.first_frame, self.num_frames):
            start = time.monotonic()
            try:
                image = self._read(index)
            except Exception as error:
                raise ValueError(
                    f'{self.name} breaks off: {index} of {self.num_frames} '
                    f'frames could be read ({brief(error)})') from error
            end = time.monotonic()
            if first is None:
                # It may have taken long to get there.
                first = end - index / self.fps
            if self.live:
                wait = first + index / self.fps - end
                self._alive(wait)
                self._stopped.wait(wait)
            if self._stopped.is_set() or image is None:
                return
            yield Frame(image, index, end - start, time.monotonic())

    def _read(self, index: int) -> np.ndarray | None:
        """The image of the next frame, RGB ``(H, W, 3)``; None at the end.

        Some of those before it may have been left out.
        """
        raise NotImplementedError
