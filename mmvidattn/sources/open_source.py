# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Function that opens any source of frames."""
from pathlib import Path
from tempfile import TemporaryDirectory

from ..utils.arguments import Positive, check_arguments
from ..utils.remote_files import download_file, without_secrets
from .files import FrameFolder, Source, VideoFile
from .network import DEFAULT_FPS, EXPECTED, SCHEMES, TIMEOUT, LiveSource


@check_arguments
def open_source(source: int | str | Path | Source, realtime: bool = False,
                fps: Positive | None = None) -> Source:
    """Open a source of frames.

    Args:
        source: Video file, folder of frames, number or device of a camera,
            named pipe, URL, or a source that is open already. An http(s) URL
            is a video file if its server sends a length. It is then copied to
            a temporary folder.
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
        _check_no_fps(text, fps)
        return VideoFile(path, realtime)
    if text.isdecimal():
        return LiveSource(int(text), fps)
    scheme = text.partition('://')[0]
    if scheme in ('http', 'https'):
        return _open_web(text, realtime, fps)
    if scheme in SCHEMES or path.is_char_device() or path.is_fifo():
        return LiveSource(text, fps)
    raise ValueError(f'source {without_secrets(text)} does not exist; '
                     f'{EXPECTED}')


def _open_web(url: str, realtime: bool, fps: float | None) -> Source:
    """Open a video file, which has a length, or a live stream."""
    name, folder = without_secrets(url), TemporaryDirectory()
    try:
        path = download_file(url, folder.name, TIMEOUT)
    except (OSError, ValueError) as error:
        raise ValueError(f'cannot open {name}: {error}; {EXPECTED}') from None
    if path is None:
        return LiveSource(url, fps)
    _check_no_fps(name, fps)
    source = VideoFile(path, realtime, name)
    # The folder is deleted together with the source.
    source.folder = folder
    return source


def _check_no_fps(name: str, fps: float | None) -> None:
    if fps is not None:
        raise ValueError(f'fps is for folders and live sources; {name} is a '
                         'video file and has its own rate')
