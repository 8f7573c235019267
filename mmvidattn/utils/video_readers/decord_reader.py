# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .base import VideoReader
from .packets import Packets, once_per_file, refuse

# Containers in which decord seeks correctly.
FORMATS = {'mov', 'matroska', 'avi'}


class DecordReader(VideoReader):
    """Reader that uses decord; arguments as in :func:`open_decord`."""

    def __init__(self, source: str | bytes, num_threads: int = 1) -> None:
        self._reader = open_decord(source, num_threads)

    def __len__(self) -> int:
        return len(self._reader)

    def frames(self) -> Iterator[np.ndarray]:
        # Read sequentially; reading by number would seek for each frame.
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
    """Open a file with decord's ``VideoReader``.

    Args:
        source: Path or contents of the file.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.
            Defaults to 1.

    Raises:
        ValueError: If decord would return wrong frames of this file.
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
    """Return why decord would return wrong frames, or an empty string."""
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
