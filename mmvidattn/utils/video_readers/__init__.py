# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of video files, selected by name."""
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from ..remote_files import local_path
from .base import VideoReader

# For each backend: required module, installation, and reader class.
BACKENDS = dict(
    decord=('decord', 'pip install decord (Linux and Windows on x86-64 only)',
            'DecordReader'),
    torchcodec=('torchcodec', 'pip install "mmvidattn[torchcodec]", and '
                "ffmpeg's libraries (apt-get install ffmpeg, conda install "
                'ffmpeg or brew install ffmpeg)', 'TorchCodecReader'),
    pyav=('av', 'pip install "av>=17.1"', 'PyAVReader'),
    opencv=('cv2', 'pip install opencv-python', 'OpenCVReader'))
VARIABLE = 'MMVIDATTN_VIDEO_BACKEND'
# A name, or a dict with the name as ``type`` and options of the reader.
VideoBackend: TypeAlias = str | Mapping[str, Any]

__all__ = [
    'BACKENDS', 'VideoBackend', 'VideoReader', 'check_video_backend',
    'default_video_backend', 'open_video', 'require_video_backend',
    'split_video_backend', 'why_no_backend'
]


def check_video_backend(name: Any) -> str:
    """Return the name of a backend if it exists.

    Raises:
        ValueError: If the backend is unknown.
    """
    if name not in BACKENDS:
        raise ValueError(f'video_backend must be one of {", ".join(BACKENDS)},'
                         f' got {name!r}')
    return name


def default_video_backend() -> str:
    """Return ``MMVIDATTN_VIDEO_BACKEND`` of the environment, or decord."""
    return check_video_backend(os.environ.get(VARIABLE) or 'decord')


def why_no_backend(name: str) -> str | None:
    """Return why a backend cannot be used, with a remedy, or None."""
    module, remedy, _ = BACKENDS[check_video_backend(name)]
    try:
        if find_spec(module) is None:
            return f'{module} is not installed: {remedy}'
        import_module(module)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        # torchcodec lists all its attempts; the first line is the summary.
        first = str(error).strip().partition('\n')[0]
        return f'{module} cannot be imported ({first}): {remedy}'
    return None


def require_video_backend(name: str) -> None:
    """Check that a backend can be used here.

    Raises:
        ImportError: If it cannot be used. The message has a remedy, and the
            option that selects another backend.
    """
    why = why_no_backend(name)
    if why is None:
        return
    other = 'torchcodec' if name != 'torchcodec' else 'pyav'
    raise ImportError(
        f'video_backend is {name}, but {why}. You can also select another '
        'backend: '
        f'--cfg-options video_backend={other} (cfg_options of get_model and '
        f'VideoClassifier) for one config, or {VARIABLE}={other} in the '
        f'environment; the backends are {", ".join(BACKENDS)}')


def split_video_backend(backend: VideoBackend) -> tuple[str, dict[str, Any]]:
    """Split a backend into its name and its options.

    Raises:
        ImportError: If the backend cannot be used here.
        ValueError: If the backend or an option is unknown.
    """
    options = dict(backend) if isinstance(backend, Mapping) else dict(
        type=backend)
    name = check_video_backend(options.pop('type', None))
    require_video_backend(name)
    allowed = _reader(name).__init__.__annotations__.keys() - {
        'source', 'return'}
    unknown = options.keys() - allowed
    if unknown:
        raise ValueError(
            f'video_backend {name} lacks the option '
            f'{", ".join(sorted(unknown))}; it has '
            f'{", ".join(sorted(allowed))}')
    return name, options


def open_video(source: str | os.PathLike | bytes,
               backend: VideoBackend | None = None) -> VideoReader:
    """Open a video file.

    Args:
        source: Path, URL (see :func:`~mmvidattn.utils.remote_files.
            local_path`) or contents of the file.
        backend: One of ``BACKENDS``, or a dict with the name as ``type`` and
            options of its reader: ``num_threads`` (1 by default);
            ``seek_mode`` of torchcodec and OpenCV, ``device`` of torchcodec.
            Defaults to :func:`default_video_backend`.

    Raises:
        ImportError: If the backend is not installed.
        ValueError: If the backend or an option is unknown.
    """
    name, options = split_video_backend(
        default_video_backend() if backend is None else backend)
    if isinstance(source, bytes):
        return _reader(name)(source, **options)
    return _reader(name)(str(local_path(source)), **options)


def _reader(name: str) -> type[VideoReader]:
    return getattr(import_module(f'.{name}_reader', __name__),
                   BACKENDS[name][2])
