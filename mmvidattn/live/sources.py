# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources of frames: files, folders, cameras and network streams."""
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import numpy as np

from ..datasets.broken_files.container_size import check_not_cut
from ..datasets.broken_files.guard import brief
from ..utils.frame_times import MAX_FPS, ConstantRate
from ..utils.urls import without_secrets
from ..utils.video_readers import (
    VideoBackend,
    default_video_backend,
    open_video,
    split_video_backend,
)
from .steps import Frame

IMAGE_SUFFIXES = '.bmp', '.jpeg', '.jpg', '.png', '.webp'
SCHEMES = 'rtsp', 'rtsps', 'rtmp', 'http', 'https', 'udp', 'tcp', 'srt'
EXPECTED = ('a source is a video file, a folder of frames, the number of a '
            f'camera, or a URL ({", ".join(SCHEMES)})')
# Assumed of cameras that report no rate, or one out of range.
DEFAULT_FPS = 25.
# Seconds that opening or reading a URL may take.
TIMEOUT = 5.
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
            if self._stopped.is_set():
                return
            yield Frame(image, index, end - start, time.monotonic())

    def _read(self, index: int) -> np.ndarray:
        """The image of the next frame, RGB ``(H, W, 3)``.

        Some of those before it may have been left out.
        """
        raise NotImplementedError


class VideoFile(RecordedSource):
    """A video file, at a constant rate (:class:`ConstantRate`).

    Args:
        path: The file.
        realtime: See :class:`RecordedSource`.
        video_backend: What decodes it; see
            :func:`~mmvidattn.utils.video_readers.open_video`.

    Raises:
        ValueError: If it cannot be opened; while it is read, if it breaks off.
    """

    def __init__(self, path: str | Path, realtime: bool = False,
                 video_backend: VideoBackend | None = None) -> None:
        backend = video_backend or default_video_backend()
        self._backend = split_video_backend(backend)[0]
        try:
            check_not_cut(path)
            self._reader = open_video(path, backend)
            self._rest: cv2.VideoCapture | None = None
            self._ticks = ConstantRate(self._reader)
            self.num_frames = len(self._ticks)
            self._decoded = self._reader.frames()
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
            self._alive()
        return self._image

    def _read_next(self) -> np.ndarray:
        if self._rest is None:
            try:
                return next(self._decoded)
            except Exception as error:
                if self._backend != 'decord':
                    raise
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


class VideoUrl(RecordedSource):
    """A video file on the web, at its average rate.

    Args:
        url: Where it is; for messages, without password and query.
        capture: What has opened it.
    """

    def __init__(self, url: str, capture: cv2.VideoCapture,
                 realtime: bool = False) -> None:
        self._capture = capture
        self.num_frames = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        super().__init__(without_secrets(url),
                         capture.get(cv2.CAP_PROP_FPS), realtime)
        # The latest frame, and the one after it, which begins then.
        self._image: np.ndarray | None = None
        self._next: np.ndarray | None = None
        self._next_begins = 0.

    def _frames(self) -> Iterator[Frame]:
        try:
            self._read_next()
            yield from super()._frames()
        finally:
            self._capture.release()

    def _read(self, index: int) -> np.ndarray:
        # A frame belongs to the tick that is nearest to it.
        while self._next is not None and (
                self._image is None
                or self._next_begins < (index + 0.5) / self.fps):
            self._image = self._next
            self._read_next()
            self._alive()
        # Headers of some kinds of files give the length to a second.
        if self._next is None and (
                self._image is None
                or index - self._next_begins * self.fps > self.fps):
            raise ValueError('the connection ended')
        return self._image

    def _read_next(self) -> None:
        is_read, image = self._capture.read()
        self._next = None
        if is_read and image is not None and image.size:
            self._next = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            begins = self._capture.get(cv2.CAP_PROP_POS_MSEC) / 1000
            if self._image is not None and begins <= self._next_begins:
                # A kind of file without time stamps.
                begins = self._next_begins + 1 / self.fps
            self._next_begins = begins


class LiveSource(Source):
    """A camera or a network stream; when it is lost, it is reopened.

    The index of a frame is by the clock, from when it arrived. ``decode_time``
    is without the wait for the frame, and without any work of the decoder
    meanwhile.

    Args:
        address: Number or device of a camera, or a URL.
        fps: Frames a second. Defaults to what the source reports.
        timeout: Seconds without a frame after which a URL is lost.
        patience: Seconds after which a lost source, or one that hangs, is
            given up.
        capture: What has opened it already, if anything.

    Raises:
        ValueError: If it cannot be opened; while it is read, if it stays lost.
    """

    def __init__(self, address: int | str, fps: float | None = None,
                 timeout: float = TIMEOUT, patience: float = 60.,
                 capture: cv2.VideoCapture | None = None) -> None:
        self._address = address
        self._timeout = timeout
        self.patience = patience
        self._capture = capture or _open(address, timeout)
        name = f'camera {address}' if isinstance(
            address, int) else without_secrets(address)
        if self._capture is None:
            raise ValueError(f'cannot open {name}: nothing is there, or it is '
                             f'in use, or it needs a password; {EXPECTED}')
        if fps is None:
            reported = self._capture.get(cv2.CAP_PROP_FPS)
            fps = reported if 1 <= reported <= MAX_FPS else DEFAULT_FPS
        super().__init__(name, fps, True)

    def _frames(self) -> Iterator[Frame]:
        first = time.monotonic()
        try:
            while not self._stopped.is_set():
                if not self._capture.grab():
                    self._reopen()
                    continue
                at = time.monotonic()
                ok, image = self._capture.retrieve()
                self._alive()
                if not ok or image is None or not image.size:
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
            self._alive()
            capture = _open(self._address, self._timeout)
            if capture is not None:
                self._capture, self.status = capture, 'running'
                return
            if time.monotonic() - lost > self.patience:
                raise ValueError(f'{self.name} was lost, and did not come '
                                 f'back in {self.patience:g} s')
            delay = min(2 * delay, MAX_DELAY)


def open_source(source: int | str | Path | Source, realtime: bool = False,
                fps: float | None = None,
                video_backend: VideoBackend | None = None) -> Source:
    """Open a source of frames.

    Args:
        source: A video file, a folder of frames, the number or device of a
            camera, a named pipe, a URL, or a source. An http(s) URL of what
            has a length is a video file.
        realtime: Play recordings at their own speed.
        fps: Frames a second of a folder (default: 25) or of a live source
            (default: what it reports).
        video_backend: What decodes a video file; see
            :func:`~mmvidattn.utils.video_readers.open_video`. OpenCV decodes
            all else.

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
        return VideoFile(path, realtime, video_backend)
    if text.isdecimal():
        return LiveSource(int(text), fps)
    if urlsplit(text).scheme in ('http', 'https'):
        return _open_web(text, realtime, fps)
    if urlsplit(text).scheme in SCHEMES or (
            path.is_char_device() or path.is_fifo()):
        return LiveSource(text, fps)
    raise ValueError(f'there is no {text}; {EXPECTED}')


def _open_web(url: str, realtime: bool, fps: float | None) -> Source:
    """A file, which has a length, or a live stream."""
    capture = _open(url, TIMEOUT)
    if capture is None or capture.get(cv2.CAP_PROP_FRAME_COUNT) < 1:
        return LiveSource(url, fps, capture=capture)
    if fps is not None:
        capture.release()
        raise ValueError(f'{without_secrets(url)} is a video file and has '
                         'its own rate; fps is for folders and live sources')
    return VideoUrl(url, capture, realtime)


def _open(address: int | str, timeout: float) -> cv2.VideoCapture | None:
    """Open a camera or a URL; None if that fails."""
    if isinstance(address, str) and '://' in address:
        limit = int(1000 * timeout)
        capture = cv2.VideoCapture(
            address, cv2.CAP_FFMPEG,
            [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, limit,
             cv2.CAP_PROP_READ_TIMEOUT_MSEC, limit])
    else:
        capture = cv2.VideoCapture(address)
    if capture.isOpened():
        return capture
    capture.release()
    return None


def _numbers(path: Path) -> list[int | str]:
    """A key that sorts frame 10 after frame 9."""
    return [int(part) if part.isdecimal() else part
            for part in re.split(r'(\d+)', path.name)]
