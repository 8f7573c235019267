# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .base import VideoReader, spans

# Containers whose packets have the time stamps of the frames in them.
WITH_TIMES = 'mov', 'mp4', 'matroska', 'webm'


class PyAVReader(VideoReader):
    """A video file, read by PyAV.

    Opening it goes through its packets. Frames of mp4, mov, mkv and webm are
    sought by their time stamps; other files are decoded from the start on.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
    """

    def __init__(self, source: str | bytes, num_threads: int = 1) -> None:
        self._source = source
        self._num_threads = num_threads
        self._open()
        packets = [
            packet for packet in self._container.demux(self._stream)
            if packet.size and not packet.is_discard]
        times = [packet.pts for packet in packets]
        names = self._container.format.name.split(',')
        self._can_seek = (
            bool({*names} & {*WITH_TIMES}) and None not in times
            and len({*times}) == len(times))
        self._length = len(packets)
        self._times = sorted(times) if self._can_seek else []
        self._numbers = {time: i for i, time in enumerate(self._times)}
        self._keys = sorted(
            self._numbers[packet.pts] for packet in packets
            if packet.is_keyframe) if self._can_seek else [0]
        self._fps = float(self._stream.average_rate or 0) or 25.
        self._base = float(self._stream.time_base)
        self._open()

    def __len__(self) -> int:
        return self._length

    def get_avg_fps(self) -> float:
        return self._fps

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        begins = np.array(self._times) * self._base if self._can_seek else \
            np.arange(self._length) / self._fps
        return spans(begins, self._fps)[np.asarray(indices)]

    def _open(self) -> None:
        import av
        source = io.BytesIO(self._source) if isinstance(
            self._source, bytes) else self._source
        self._container = av.open(source)
        self._stream = self._container.streams.video[0]
        self._stream.codec_context.thread_count = self._num_threads
        if self._num_threads != 1:
            self._stream.thread_type = 'AUTO'
        self._frames = self._container.decode(self._stream)
        # The number of the frame that is decoded next.
        self._next = 0

    def _read(self, indices: list[int]) -> np.ndarray:
        found = {}
        for index in sorted({*indices}):
            found[index] = _image(self._frame(index))
        return np.stack([found[index] for index in indices])

    def _frame(self, index: int) -> Any:
        key = self._keys[bisect_right(self._keys, index) - 1] \
            if index >= self._keys[0] else 0
        if index < self._next or key > self._next:
            self._open() if not self._can_seek or key == 0 else \
                self._seek(key)
        for frame in self._numbered():
            if self._next > index:
                return frame
        raise ValueError(f'frame {index} of {self._length} cannot be read')

    def _seek(self, key: int) -> None:
        self._container.seek(self._times[key], stream=self._stream)
        self._frames = self._container.decode(self._stream)
        self._next = key

    def _numbered(self) -> Iterator[Any]:
        """The next frames; ``_next`` is the number of the one that follows."""
        for frame in self._frames:
            if not self._can_seek:
                self._next += 1
            elif frame.pts in self._numbers:
                self._next = self._numbers[frame.pts] + 1
            else:
                # Shown before what was sought, or cut away by an edit list.
                continue
            yield frame


def _image(frame: Any) -> np.ndarray:
    """RGB [H, W, 3], turned as the file says."""
    image = frame.to_ndarray(format='rgb24')
    return np.rot90(image, frame.rotation // 90) if frame.rotation else image
