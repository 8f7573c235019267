# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check a video file for damage."""
import os.path as osp
from collections import deque

from ...utils.remote_files import RemoteError
from ...utils.video_reader import open_video


def find_fault(filename: str, every_frame: bool = False) -> Exception | None:
    """Open a video, decode its last frame, and return the error, if any.

    Args:
        filename: Video; ``.mp4`` is appended if the suffix is missing.
        every_frame: Decode every frame instead of only the last one.

    Raises:
        RemoteError: If the server of a remote video cannot be reached.
    """
    # mmaction2's readers append .mp4 to a name without a suffix.
    path = filename if osp.splitext(filename)[1] else f'{filename}.mp4'
    try:
        reader = open_video(path)
        if every_frame:
            deque(reader.frames(), maxlen=0)
        reader[len(reader) - 1]
    except RemoteError:
        raise
    except Exception as error:
        return error
    return None
