# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of all readers of video files."""
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

SeekMode = Literal['exact', 'approximate']


class VideoReader:
    """Reader of the frames of a video file by number, counted from 0.

    Methods have the same names as in decord's reader.

    Attributes:
        has_quick_times: True if :meth:`get_frame_timestamp` works without
            decoding.
    """
    has_quick_times = True

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, index: int) -> np.ndarray:
        """Return a frame, uint8 [H, W, 3], RGB."""
        return self.get_batch([index])[0]

    def get_batch(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return frames in the order of ``indices``, uint8 [T, H, W, 3], RGB.

        Raises:
            IndexError: If an index is out of range.
        """
        indices = np.asarray(indices, dtype=np.int64).ravel()
        if indices.size and not (0 <= indices.min()
                                 and indices.max() < len(self)):
            raise IndexError(
                f'frames must be from 0 to {len(self) - 1}, got '
                f'{indices.min()} to {indices.max()}')
        return self._read(indices.tolist())

    def frames(self) -> Iterator[np.ndarray]:
        """Yield all frames in order, each uint8 [H, W, 3], RGB."""
        for index in range(len(self)):
            yield self[index]

    def get_avg_fps(self) -> float:
        """Return the average number of frames per second."""
        raise NotImplementedError

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        """Return the seconds at which frames begin and end, [T, 2]."""
        raise NotImplementedError

    def _read(self, indices: list[int]) -> np.ndarray:
        raise NotImplementedError


def spans(begins: np.ndarray, fps: float) -> np.ndarray:
    """Return begin and end of each frame, [T, 2].

    The last frame has the median duration.
    """
    last = np.median(np.diff(begins)) if len(begins) > 1 else 1 / fps
    return np.stack([begins, np.append(begins[1:], begins[-1:] + last)], 1)
