# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Function that opens any source of frames."""
from pathlib import Path
from urllib.parse import urlsplit

from ..utils.arguments import Positive, check_arguments
from ..utils.remote_files import without_secrets
from .base import Source
from .files import FrameFolder, VideoFile
from .network import (
    DEFAULT_FPS,
    EXPECTED,
    SCHEMES,
    TIMEOUT,
    LiveSource,
    VideoUrl,
    open_capture,
)


@check_arguments
def open_source(source: int | str | Path | Source, realtime: bool = False,
                fps: Positive | None = None) -> Source:
    """Open a source of frames.

    Args:
        source: Video file, folder of frames, number or device of a camera,
            named pipe, URL, or a source that is open already. An http(s) URL
            is a video file if its server sends a length.
        realtime: Play recordings in real time.
        fps: Frames per second of a folder (default: 25) or of a live source
            (default: the rate that it reports).

    Raises:
        ValueError: If the source cannot be opened.
    """
    if isinstance(source, Source):
        return source
    text = str(source)
    path = Path(text)
    if path.is_dir():
        return FrameFolder(path, fps or DEFAULT_FPS, realtime)
    if path.is_file():
        if fps is not None:
            raise ValueError(f'fps is for folders and live sources; {path} is '
                             'a video file and has its own rate')
        return VideoFile(path, realtime)
    if text.isdecimal():
        return LiveSource(int(text), fps)
    if urlsplit(text).scheme in ('http', 'https'):
        return _open_web(text, realtime, fps)
    if urlsplit(text).scheme in SCHEMES or (
            path.is_char_device() or path.is_fifo()):
        return LiveSource(text, fps)
    raise ValueError(f'source {text} does not exist; {EXPECTED}')


def _open_web(url: str, realtime: bool, fps: float | None) -> Source:
    """Open a video file, which has a length, or a live stream."""
    stream = open_capture(url, TIMEOUT)
    if stream is None or not stream.is_file:
        return LiveSource(url, fps, capture=stream)
    if fps is not None:
        stream.release()
        raise ValueError('fps is for folders and live sources; '
                         f'{without_secrets(url)} is a video file and has its '
                         'own rate')
    return VideoUrl(url, stream, realtime)
