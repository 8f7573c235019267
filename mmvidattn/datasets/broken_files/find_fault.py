# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Looks through a video file for damage."""
import os.path as osp

from mmengine.fileio import get_local_path

from ...utils.video_readers import (
    VideoBackend,
    default_video_backend,
    open_video,
    split_video_backend,
)
from .container_size import check_not_cut

CHUNK = 32


def find_fault(filename: str, every_frame: bool = False,
               backend: VideoBackend | None = None) -> Exception | None:
    """Open a video and decode its last frame; returns the error, if any.

    Args:
        filename: The video; without a suffix it is an mp4.
        every_frame: Whether to decode all of it.
        backend: See :func:`~mmvidattn.utils.video_readers.open_video`.

    Raises:
        ImportError: If the backend is not installed, which is no fault of the
            video.
    """
    backend = default_video_backend() if backend is None else backend
    split_video_backend(backend)
    # mmaction2's readers take a name without a suffix for an mp4.
    path = filename if osp.splitext(filename)[1] else f'{filename}.mp4'
    try:
        with get_local_path(path) as local:
            check_not_cut(local)
            reader = open_video(local, backend)
            length = len(reader)
            if length < 1:
                raise ValueError('it has no frames')
            if every_frame:
                for start in range(0, length, CHUNK):
                    wanted = range(start, min(start + CHUNK, length))
                    found = reader.get_batch(list(wanted)).shape[0]
                    if found != len(wanted):
                        raise ValueError(
                            f'{start + found} frames can be read, {length} '
                            'are announced')
            reader[length - 1]
    except Exception as error:
        return error
    return None
