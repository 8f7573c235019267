# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
from collections.abc import Iterator, Sequence

import numpy as np

from .base import VideoReader


class DecordReader(VideoReader):
    """A video file, read by decord.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
    """

    def __init__(self, source: str | bytes, num_threads: int = 1) -> None:
        import decord
        if isinstance(source, bytes):
            source = io.BytesIO(source)
        self._reader = decord.VideoReader(source, num_threads=num_threads)

    def __len__(self) -> int:
        return len(self._reader)

    def frames(self) -> Iterator[np.ndarray]:
        # By number, it would look for each.
        while True:
            yield self._reader.next().asnumpy()

    def get_avg_fps(self) -> float:
        return float(self._reader.get_avg_fps())

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        return self._reader.get_frame_timestamp(indices)

    def _read(self, indices: list[int]) -> np.ndarray:
        return self._reader.get_batch(indices).asnumpy()
