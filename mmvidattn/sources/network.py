# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cameras and network streams."""
import os
import time
from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np

from ..utils.arguments import Positive, check_arguments
from ..utils.frame_times import MAX_FPS
from ..utils.remote_files import without_secrets
from ..utils.video_reader import keep_in_forks, to_rgb, video_stream
from .files import Frame, Source

SCHEMES = 'rtsp', 'rtsps', 'rtmp', 'http', 'https', 'udp', 'tcp', 'srt'
EXPECTED = ('a source is a video file, a folder of frames, the number of a '
            f'camera, or a URL ({", ".join(SCHEMES)})')
# Rate of cameras that report no rate, or an invalid one.
DEFAULT_FPS = 25.
# Environment variable with options for ffmpeg, which OpenCV reads as well.
OPTIONS = 'OPENCV_FFMPEG_CAPTURE_OPTIONS'
# Maximum seconds for opening or reading a URL.
TIMEOUT = 5.
# Maximum number of packets before the first key frame of a stream.
MAX_WAIT = 600
# Seconds between attempts to reopen a lost source.
FIRST_DELAY, MAX_DELAY = 0.25, 5.


class Stream:
    """Stream from a URL or a named pipe, decoded by PyAV.

    If the size of the frames changes, they are scaled to the size of the first
    one.

    Args:
        address: URL or path.
        timeout: Maximum seconds for opening or reading a URL.
        options: Options of ffmpeg's demuxers and protocols.

    Attributes:
        fps: Average frames per second; 0 if unknown.
        frame: Frame of the last :meth:`grab`.
    """

    def __init__(self, address: str, timeout: float,
                 options: dict[str, str] | None = None) -> None:
        is_url = '://' in address
        self._container = av.open(
            address, timeout=timeout if is_url else None, options=options)
        keep_in_forks(self)
        self._decoded = self._decode()
        self._size: tuple[int, int] | None = None
        try:
            stream = video_stream(self._container)
        except ValueError:
            self.release()
            raise
        stream.thread_type = 'AUTO'
        self.fps = float(stream.average_rate or stream.guessed_rate or 0)

    def grab(self) -> bool:
        """Decode the next frame. Return False if the stream ended or failed.
        """
        try:
            self.frame = next(self._decoded, None)
        except av.FFmpegError:
            return False
        return self.frame is not None

    def retrieve(self) -> np.ndarray:
        """Return the frame, RGB ``(H, W, 3)``."""
        if self._size is None:
            self._size = self.frame.width, self.frame.height
        return to_rgb(self.frame, self._size)

    def release(self) -> None:
        """Close the stream."""
        self._decoded.close()
        self._container.close()

    def _decode(self) -> Iterator[av.VideoFrame]:
        has_begun = False
        packets = self._container.demux(video_stream(self._container))
        for number, packet in enumerate(packets):
            # Some decoders give gray frames before the first key frame.
            has_begun |= packet.is_keyframe or number == MAX_WAIT
            if not has_begun:
                continue
            try:
                yield from packet.decode()
            except av.InvalidDataError:
                # Skip a packet that the network has damaged.
                continue


class Camera:
    """Camera, read by OpenCV, with the interface of :class:`Stream`.

    Args:
        address: Number or device of the camera.

    Raises:
        ValueError: If the camera cannot be opened.
    """

    def __init__(self, address: int | str) -> None:
        # OpenCV prints several warnings about a missing camera.
        level = cv2.utils.logging.setLogLevel(0)
        try:
            self._capture = cv2.VideoCapture(address)
        finally:
            cv2.utils.logging.setLogLevel(level)
        if not self._capture.isOpened():
            self.release()
            raise ValueError(f'cannot open camera {address}')
        self.fps = self._capture.get(cv2.CAP_PROP_FPS)

    def grab(self) -> bool:
        """Take the next frame. Return False if the camera failed."""
        return self._capture.grab()

    def retrieve(self) -> np.ndarray | None:
        """Return the frame, RGB ``(H, W, 3)``, or None if it is damaged."""
        ok, image = self._capture.retrieve()
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if (
            ok and image is not None and image.size) else None

    def release(self) -> None:
        """Close the camera."""
        self._capture.release()


@check_arguments
class LiveSource(Source):
    """Source of a camera or a network stream, with reconnection.

    The index of a frame is computed from its arrival time. ``decode_time``
    excludes the wait for a frame, and the decoder's work during the wait. A
    lost connection is reopened.

    Args:
        address: Number or device of a camera, or a URL.
        fps: Frames per second. Defaults to the rate that the source reports.
        timeout: Seconds without a frame after which a URL is considered lost.
        patience: Seconds after which a lost or hanging source is an error.

    Raises:
        ValueError: If the source cannot be opened; while iterating, if it
            stays lost.
    """

    def __init__(self, address: int | str, fps: Positive | None = None,
                 timeout: float = TIMEOUT, patience: float = 60.) -> None:
        self._address = address
        self._timeout = timeout
        self.patience = patience
        self._capture = open_capture(address, timeout)
        name = f'camera {address}' if isinstance(
            address, int) else without_secrets(address)
        if self._capture is None:
            reasons = 'or is in use' if isinstance(
                address, int) else 'is in use, or needs a password'
            raise ValueError(f'cannot open {name}: it does not exist, '
                             f'{reasons}; {EXPECTED}')
        if fps is None:
            reported = self._capture.fps
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
                image = self._capture.retrieve()
                self._alive()
                if image is None:
                    continue
                yield Frame(image, round((at - first) * self.fps),
                            time.monotonic() - at, at)
        finally:
            self._capture.release()

    def _reopen(self) -> None:
        lost = time.monotonic()
        delay = FIRST_DELAY
        self._capture.release()
        self.status = 'lost, reconnecting'
        while not self._stopped.wait(delay):
            self._alive()
            capture = open_capture(self._address, self._timeout)
            if capture is not None:
                self._capture, self.status = capture, 'running'
                return
            if time.monotonic() - lost > self.patience:
                raise ValueError(f'{self.name} was lost and could not be '
                                 f'reopened in {self.patience:g} s')
            delay = min(2 * delay, MAX_DELAY)


def open_capture(address: int | str, timeout: float) -> Stream | Camera | None:
    """Open a camera, a URL or a named pipe. Return None on failure."""
    is_camera = isinstance(address, int) or Path(address).is_char_device()
    text = os.environ.get(OPTIONS, 'rtsp_flags;prefer_tcp')
    pairs = [pair.split(';') for pair in text.split('|') if pair]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f'{OPTIONS} must be name;value|name;value, got '
                         f'{text!r}')
    try:
        return Camera(address) if is_camera else Stream(
            address, timeout, dict(pairs))
    except (av.FFmpegError, ValueError):
        return None
