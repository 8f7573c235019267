# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What every reader of video files can do."""
from collections.abc import Iterator, Sequence

import numpy as np


class VideoReader:
    """The frames of a video file, by number, from 0.

    Methods have the names that decord's reader has.

    Attributes:
        has_quick_times: Whether :meth:`get_frame_timestamp` decodes nothing.
    """
    has_quick_times = True

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, index: int) -> np.ndarray:
        """A frame, uint8 [H, W, 3], RGB."""
        return self.get_batch([index])[0]

    def get_batch(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Frames in the order of ``indices``, uint8 [T, H, W, 3], RGB.

        Raises:
            IndexError: If there is no such frame.
        """
        wanted = np.asarray(indices, dtype=np.int64).ravel()
        if wanted.size and not (0 <= wanted.min()
                                and wanted.max() < len(self)):
            raise IndexError(
                f'frames must be from 0 to {len(self) - 1}, got '
                f'{wanted.min()} to {wanted.max()}')
        return self._read(wanted.tolist())

    def frames(self) -> Iterator[np.ndarray]:
        """All frames in order, each uint8 [H, W, 3], RGB."""
        for index in range(len(self)):
            yield self[index]

    def get_avg_fps(self) -> float:
        """Frames a second, on average."""
        raise NotImplementedError

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        """Seconds at which frames begin and end, [T, 2]."""
        raise NotImplementedError

    def _read(self, indices: list[int]) -> np.ndarray:
        raise NotImplementedError


def spans(begins: np.ndarray, fps: float) -> np.ndarray:
    """Begin and end of each frame, [T, 2]; the last lasts as most do."""
    usual = np.median(np.diff(begins)) if len(begins) > 1 else 1 / fps
    return np.stack([begins, np.append(begins[1:], begins[-1:] + usual)], 1)
