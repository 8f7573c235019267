# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The config key ``video_backend``, which selects the video decoder."""
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.config import Config

from .video_readers import VARIABLE, VideoBackend, split_video_backend

KEY = 'video_backend'
# Pipeline steps that open and decode videos.
OPENS = {
    'DecordInit', 'DecordSegmentInit', 'OpenCVInit', 'PyAVInit',
    'TorchCodecInit', 'VideoReaderInit'}
DECODES = {
    'DecordDecode', 'OpenCVDecode', 'PyAVDecode', 'TorchCodecDecode',
    'VideoReaderDecode'}
# Options of the decoder. All other options concern access to the file.
DECODER_OPTIONS = {'backend', 'device', 'seek_mode'}


def video_backend_of(cfg: Config) -> VideoBackend | None:
    """Return ``video_backend`` of a config or the environment variable.

    The variable is ``MMVIDATTN_VIDEO_BACKEND``. Returns None if neither is
    set.
    """
    return cfg.get(KEY) or os.environ.get(VARIABLE) or None


def apply_video_backend(cfg: Config) -> None:
    """Set the video decoder of all pipelines to ``video_backend``.

    Without this key and the environment variable, the config stays unchanged.
    Options for access to files do not change. The number of threads changes
    only if ``video_backend`` sets it. A second call has no effect.

    Args:
        cfg: Config to change in place.

    Raises:
        ImportError: If the backend is not installed.
        ValueError: If the backend is unknown, or a step uses a mode that only
            decord has.
    """
    backend = video_backend_of(cfg)
    if backend is None:
        return
    split_video_backend(backend)
    for name, old in list(cfg.items()):
        if name == KEY:
            continue
        new = with_video_backend(old, backend)
        if new != old:
            cfg[name] = new


def with_video_backend(value: Any, backend: VideoBackend) -> Any:
    """Return a copy of a config, or of a part of it, with another backend.

    Args:
        value: Config, dict, list or single option.
        backend: Name, or dict with the name as ``type`` and options; see
            :func:`~mmvidattn.utils.video_readers.open_video`.
    """
    if isinstance(value, Mapping):
        kind = value.get('type')
        kind = getattr(kind, '__name__', kind)
        if isinstance(kind, str):
            kind = kind.rpartition('.')[2]
            if kind in OPENS:
                return _opening(kind, value, backend)
            if kind in DECODES:
                return _decoding(kind, value, backend)
        return type(value)({key: with_video_backend(item, backend)
                            for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return type(value)([with_video_backend(one, backend)
                            for one in value])
    return value


def _opening(kind: str, step: Mapping, backend: VideoBackend) -> Mapping:
    name, options = split_video_backend(backend)
    kept = {key: item for key, item in step.items()
            if key not in DECODER_OPTIONS}
    if name == 'decord':
        kept['type'] = kind if kind.startswith('Decord') else 'DecordInit'
    elif name == 'torchcodec':
        kept['type'] = 'TorchCodecInit'
    else:
        kept.update(type='VideoReaderInit', backend=name)
    return type(step)({**kept, **options})


def _decoding(kind: str, step: Mapping, backend: VideoBackend) -> Mapping:
    name, _ = split_video_backend(backend)
    if name == 'decord' and kind == 'DecordDecode':
        return step
    if step.get('mode', 'accurate') != 'accurate':
        raise ValueError(
            f"{KEY} must be unset if {kind} has mode={step['mode']!r}, which "
            f'{name} lacks; got {backend!r}')
    return type(step)(type=dict(
        decord='DecordDecode', torchcodec='TorchCodecDecode').get(
            name, 'VideoReaderDecode'))
