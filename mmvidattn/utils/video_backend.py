# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The config key ``video_backend``, which selects the steps that decode."""
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.config import Config

KEY = 'video_backend'
# For each backend, the pipeline steps that open and decode videos.
BACKENDS = dict(pyav=('VideoReaderInit', 'VideoReaderDecode'),
                decord=('DecordInit', 'DecordDecode'))
OPENS = {'DecordInit', 'DecordSegmentInit', 'OpenCVInit', 'PyAVInit',
         'VideoReaderInit'}
DECODES = {'DecordDecode', 'OpenCVDecode', 'PyAVDecode', 'VideoReaderDecode'}


def apply_video_backend(cfg: Config) -> None:
    """Replace the steps that decode videos in all pipelines of a config.

    With ``video_backend='pyav'``, which our configs set, the reader of this
    package decodes; with ``'decord'``, mmaction2's steps. Without this key,
    the config stays unchanged. Other options of the steps do not change. A
    second call has no effect.

    Args:
        cfg: Config to change in place.

    Raises:
        ValueError: If the backend is unknown, or a step uses a mode that only
            its own decoder has.
    """
    backend = cfg.get(KEY)
    if backend is None:
        return
    if backend not in BACKENDS:
        raise ValueError(f'{KEY} must be one of {", ".join(BACKENDS)}, got '
                         f'{backend!r}')
    for name, old in list(cfg.items()):
        new = with_video_backend(old, backend)
        if new != old:
            cfg[name] = new


def with_video_backend(value: Any, backend: str) -> Any:
    """Return a copy of a config, or of a part of it, with another backend."""
    if isinstance(value, Mapping):
        kind = value.get('type')
        kind = str(getattr(kind, '__name__', kind)).rpartition('.')[2]
        opens, decodes = BACKENDS[backend]
        if kind in OPENS and not (kind.startswith('Decord')
                                  and backend == 'decord'):
            return type(value)(dict(value, type=opens))
        if kind in DECODES - {decodes}:
            if value.get('mode', 'accurate') != 'accurate':
                raise ValueError(
                    f"{KEY} must be unset if {kind} has mode="
                    f"{value['mode']!r}, which {backend} lacks")
            return type(value)(type=decodes)
        return type(value)({key: with_video_backend(item, backend)
                            for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return type(value)([with_video_backend(one, backend) for one in value])
    return value
