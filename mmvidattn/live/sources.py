# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources of frames: files, folders, cameras and network streams."""
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import decord
import numpy as np

from ..datasets.broken_files.container_size import check_not_cut
from ..datasets.broken_files.guard import brief
from ..utils.frame_times import MAX_FPS, ConstantRate
from .steps import Frame

IMAGE_SUFFIXES = '.bmp', '.jpeg', '.jpg', '.png', '.webp'
SCHEMES = 'rtsp', 'rtsps', 'rtmp', 'http', 'https', 'udp', 'tcp', 'srt'
EXPECTED = ('a source is a video file, a folder of frames, the number of a '
            f'camera, or a URL ({", ".join(SCHEMES)})')
# Assumed of cameras that report no rate, or one out of range.
DEFAULT_FPS = 25.
# Seconds between attempts to reopen a lost source.
FIRST_DELAY, MAX_DELAY = 0.25, 5.


class Source:
    """Frames in order; iterate over it once.

    Args:
        name: Name for users.
        fps: Frames a second.
        live: Whether it goes on even if it is not read.

    Attributes:
        status: 'running', 'ended', or a line about what is wrong.
    """

    def __init__(self, name: str, fps: float, live: bool) -> None:
        self.name = name
        self.fps = fps
        self.live = live
        self.status = 'running'
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[Frame]:
        try:
            yield from self._frames()
            self.status = 'ended'
        except Exception as error:
            self.status = f'failed: {error}'
            raise

    def stop(self) -> None:
        """End the iteration soon; from any thread."""
        self._stopped.set()

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
    num_frames: int

    def _frames(self) -> Iterator[Frame]:
        first = time.monotonic()
        for index in range(self.num_frames):
            start = time.monotonic()
            try:
                image = self._read(index)
            except Exception as error:
                raise ValueError(
                    f'{self.name} breaks off: {index} of {self.num_frames} '
                    f'frames could be read ({brief(error)})') from error
            end = time.monotonic()
            if self.live:
                self._stopped.wait(first + index / self.fps - end)
            if self._stopped.is_set():
                return
            yield Frame(image, index, end - start, time.monotonic())

    def _read(self, index: int) -> np.ndarray:
        """The image of the next frame, RGB ``(H, W, 3)``."""
        raise NotImplementedError


class VideoFile(RecordedSource):
    """A video file, at a constant rate (:class:`ConstantRate`).

    Raises:
        ValueError: If it cannot be opened; while it is read, if it breaks off.
    """

    def __init__(self, path: str | Path, realtime: bool = False) -> None:
        try:
            check_not_cut(path)
            self._reader = decord.VideoReader(str(path), num_threads=1)
            self._rest: cv2.VideoCapture | None = None
            self._ticks = ConstantRate(self._reader)
            self.num_frames = len(self._ticks)
        except Exception as error:
            raise ValueError(f'cannot open {path} as a video: {brief(error)}'
                             ) from error
        # The number of the frame that is read next.
        self._next = 0
        super().__init__(str(path), self._ticks.fps, realtime)

    def _read(self, index: int) -> np.ndarray:
        while self._next <= self._ticks.frames(index):
            self._image = self._read_next()
            self._next += 1
        return self._image

    def _read_next(self) -> np.ndarray:
        if self._rest is None:
            try:
                return self._reader.next().asnumpy()
            except decord.DECORDError as error:
                # decord reads ahead, the further the busier the machine is: a
                # fault that it has met hides the frames before it. OpenCV
                # does not.
                self._fault = error
                self._rest = cv2.VideoCapture(self.name)
                for _ in range(self._next):
                    self._rest.grab()
        is_read, image = self._rest.read()
        if not is_read:
            self._rest.release()
            raise self._fault
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


class FrameFolder(RecordedSource):
    """A folder of images, in the order of the numbers in their names."""

    def __init__(self, path: str | Path, fps: float,
                 realtime: bool = False) -> None:
        self._paths = sorted(
            (p for p in Path(path).iterdir()
             if p.suffix.lower() in IMAGE_SUFFIXES), key=_numbers)
        if not self._paths:
            raise ValueError(f'no frames in the folder {path}; their names '
                             f'end with one of {", ".join(IMAGE_SUFFIXES)}')
        self.num_frames = len(self._paths)
        super().__init__(str(path), fps, realtime)

    def _read(self, index: int) -> np.ndarray:
        path = self._paths[index]
        image = cv2.imread(str(path))
        if image is None:
            raise ValueError(f'{path.name} could not be read')
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


class LiveSource(Source):
    """A camera or a network stream; when it is lost, it is reopened.

    The index of a frame is by the clock, from when it arrived. ``decode_time``
    is without the wait for the frame, and without any work of the decoder
    meanwhile.

    Args:
        address: Number or device of a camera, or a URL.
        fps: Frames a second. Defaults to what the source reports.
        timeout: Seconds without a frame after which a URL is lost.
        patience: Seconds after which a lost source is given up.

    Raises:
        ValueError: If it cannot be opened; while it is read, if it stays lost.
    """

    def __init__(self, address: int | str, fps: float | None = None,
                 timeout: float = 5., patience: float = 60.) -> None:
        self._address = address
        self._timeout = timeout
        self._patience = patience
        self._capture = self._open()
        name = f'camera {address}' if isinstance(
            address, int) else _without_secrets(address)
        if self._capture is None:
            raise ValueError(f'cannot open {name}: nothing is there, or it is '
                             f'in use, or it needs a password; {EXPECTED}')
        if fps is None:
            reported = self._capture.get(cv2.CAP_PROP_FPS)
            fps = reported if 1 <= reported <= MAX_FPS else DEFAULT_FPS
        super().__init__(name, fps, True)

    def _open(self) -> cv2.VideoCapture | None:
        if isinstance(self._address, str) and '://' in self._address:
            limit = int(1000 * self._timeout)
            capture = cv2.VideoCapture(
                self._address, cv2.CAP_FFMPEG,
                [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, limit,
                 cv2.CAP_PROP_READ_TIMEOUT_MSEC, limit])
        else:
            capture = cv2.VideoCapture(self._address)
        if capture.isOpened():
            return capture
        capture.release()
        return None

    def _frames(self) -> Iterator[Frame]:
        first = time.monotonic()
        try:
            while not self._stopped.is_set():
                if not self._capture.grab():
                    self._reopen()
                    continue
                at = time.monotonic()
                ok, image = self._capture.retrieve()
                if not ok:
                    continue
                image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
                yield Frame(image, round((at - first) * self.fps),
                            time.monotonic() - at, at)
        finally:
            self._capture.release()

    def _reopen(self) -> None:
        lost = time.monotonic()
        delay = FIRST_DELAY
        self._capture.release()
        self.status = 'lost, looking for it'
        while not self._stopped.wait(delay):
            capture = self._open()
            if capture is not None:
                self._capture, self.status = capture, 'running'
                return
            if time.monotonic() - lost > self._patience:
                raise ValueError(f'{self.name} was lost, and did not come '
                                 f'back in {self._patience:g} s')
            delay = min(2 * delay, MAX_DELAY)


def open_source(source: int | str | Path | Source, realtime: bool = False,
                fps: float | None = None) -> Source:
    """Open a source of frames.

    Args:
        source: A video file, a folder of frames, the number or device of a
            camera, a URL, or a source.
        realtime: Play recordings at their own speed.
        fps: Frames a second of a folder (default: 25) or of a live source
            (default: what it reports).

    Raises:
        ValueError: If it cannot be opened.
    """
    if isinstance(source, Source):
        return source
    if fps is not None and not fps > 0:
        raise ValueError(f'fps must be above 0, got {fps}')
    text = str(source)
    path = Path(text)
    if path.is_dir():
        return FrameFolder(path, fps or DEFAULT_FPS, realtime)
    if path.is_file():
        if fps is not None:
            raise ValueError(f'{path} is a video file and has its own rate; '
                             'fps is for folders and live sources')
        return VideoFile(path, realtime)
    if text.isdecimal():
        return LiveSource(int(text), fps)
    if urlsplit(text).scheme in SCHEMES or path.is_char_device():
        return LiveSource(text, fps)
    raise ValueError(f'there is no {text}; {EXPECTED}')


def _numbers(path: Path) -> list[int | str]:
    """A key that sorts frame 10 after frame 9."""
    return [int(part) if part.isdecimal() else part
            for part in re.split(r'(\d+)', path.name)]


def _without_secrets(url: str) -> str:
    """A URL without user, password and query."""
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    return f'{parts.scheme}://{parts.netloc.rpartition("@")[2]}{parts.path}'
