# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .base import VideoReader
from .packets import Packets, once_per_file, refuse

# Containers that decord reads right.
FORMATS = {'mov', 'matroska', 'avi'}


class DecordReader(VideoReader):
    """A video file, read by decord.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.

    Raises:
        ValueError: If decord would take wrong frames of this file.
    """

    def __init__(self, source: str | bytes, num_threads: int = 1) -> None:
        self._reader = open_decord(source, num_threads)

    def __len__(self) -> int:
        return len(self._reader)

    def frames(self) -> Iterator[np.ndarray]:
        # By number, it would look for each.
        self._reader.seek(0)
        for _ in range(len(self)):
            yield self._reader.next().asnumpy()

    def get_avg_fps(self) -> float:
        return float(self._reader.get_avg_fps())

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        return self._reader.get_frame_timestamp(indices)

    def _read(self, indices: list[int]) -> np.ndarray:
        return self._reader.get_batch(indices).asnumpy()


def open_decord(source: str | bytes, num_threads: int = 1) -> Any:
    """Open decord's own reader of a file.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.

    Raises:
        ValueError: If decord would take wrong frames of this file.
    """
    import decord
    why = _why_wrong(source)
    if why:
        refuse('decord', source, why)
    return decord.VideoReader(
        io.BytesIO(source) if isinstance(source, bytes) else source,
        num_threads=num_threads)


@once_per_file
def _why_wrong(source: str | bytes) -> str:
    """Return why decord takes wrong frames; empty if it does not."""
    packets = Packets(source)
    if not packets.formats & FORMATS:
        return f'it seeks wrongly in {"/".join(sorted(packets.formats))} files'
    if packets.hidden:
        return f'it counts {packets.hidden} frames that an edit list hides'
    if packets.skipped:
        return 'the file does not begin with a key frame'
    if packets.times is None:
        return 'some frames lack a time stamp or share one'
    if packets.is_open:
        return 'it misplaces frames of open groups of pictures after a seek'
    if 'avi' in packets.formats and packets.has_b_frames:
        return 'it is an avi with B-frames'
    return ''
