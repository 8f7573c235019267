# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A source of frames by its file, folder, number or URL."""
from pathlib import Path
from urllib.parse import urlsplit

from ..utils.urls import without_secrets
from ..utils.video_readers import VideoBackend
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
            :class:`VideoFile`. PyAV decodes URLs and named pipes, and OpenCV
            reads cameras.

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
    stream = open_capture(url, TIMEOUT)
    if stream is None or not stream.num_frames:
        return LiveSource(url, fps, capture=stream)
    if fps is not None:
        stream.release()
        raise ValueError(f'{without_secrets(url)} is a video file and has '
                         'its own rate; fps is for folders and live sources')
    return VideoUrl(url, stream, realtime)
