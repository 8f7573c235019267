# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Local copies of the videos of samples."""
import os.path as osp
from collections.abc import Mapping
from typing import Any

from ..utils.remote_files import HeldFile, is_url, local_file


def hold_video(sample: Mapping[str, Any]) -> HeldFile | None:
    """Return a local copy of a sample's video, or None for a local video.

    Args:
        sample: Sample with a ``filename``. If the video is a part of another
            file, ``span`` has its URL or path, start and size in bytes.

    Raises:
        RemoteError: If the server does not answer. See
            :func:`~mmvidattn.utils.remote_files.local_file` for other errors.
    """
    name = str(sample.get('filename') or '')
    if 'span' in sample:
        file, start, size = sample['span']
        return local_file(file, span=(start, size), name=name)
    if not is_url(name):
        return None
    # mmaction2's readers append .mp4 to a name without a suffix.
    return local_file(name if osp.splitext(name)[1] else f'{name}.mp4')
