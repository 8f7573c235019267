# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from bisect import bisect_right

import av
import numpy as np

from .packets import (
    WITH_TIMES,
    Packets,
    PacketsReader,
    decode,
    keep_in_forks,
    open_container,
    to_rgb,
    video_stream,
)


class PyAVReader(PacketsReader):
    """Reader that uses PyAV.

    Opening a file reads its packets. In mp4, mov, mkv and webm files, the
    reader seeks by time stamp; other files are decoded from the start. Frames
    before the first key frame cannot be decoded, and are not counted.

    Args:
        source: Path or contents of the file.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.
            Defaults to 1.
    """

    def __init__(self, source: str | bytes, num_threads: int = 1) -> None:
        self._source = source
        self._num_threads = num_threads
        self.packets = packets = Packets(source)
        # Only these containers have correct time stamps in all packets.
        self._numbers = {
            time: i for i, time in enumerate(packets.times or ())
        } if packets.formats & WITH_TIMES else {}
        keep_in_forks(self)
        self._open()

    def get_avg_fps(self) -> float:
        return self.packets.fps

    def __del__(self) -> None:
        # Close explicitly, because PyAV's containers and streams are a
        # reference cycle.
        if hasattr(self, '_container'):
            self._decoded.close()
            self._container.close()

    def _open(self) -> None:
        self.__del__()
        self._container = open_container(self._source)
        stream = video_stream(self._container)
        stream.codec_context.thread_count = self._num_threads
        if self._num_threads != 1:
            stream.thread_type = 'AUTO'
        self._decoded = decode(self._container, self.packets.skipped)
        # Number of the frame that is decoded next.
        self._next, self._has_sought = 0, False

    def _frame(self, index: int) -> np.ndarray:
        passed = bisect_right(self.packets.keys, index)
        key = self.packets.keys[passed - 1] if passed else 0
        if index < self._next or key > self._next:
            self._seek(key) if key else self._open()
        frame = self._find(index)
        if frame is None and self._has_sought:
            # Retry from the start: some key frames depend on earlier frames
            # (intra refresh).
            self._open()
            frame = self._find(index)
        if frame is None:
            raise ValueError(f'frame {index} of {len(self)} cannot be read')
        return to_rgb(frame)

    def _seek(self, key: int) -> None:
        self._container.seek(
            self.packets.times[key],
            stream=video_stream(self._container))
        self._decoded = decode(self._container)
        self._next, self._has_sought = key, True

    def _find(self, index: int) -> av.VideoFrame | None:
        """Decode up to a frame; None if the decoder skips it."""
        for frame in self._decoded:
            number = self._numbers.get(frame.pts) if self._numbers \
                else self._next
            if number is None:
                # Hidden by an edit list, or shown before the key frame.
                continue
            self._next = number + 1
            if number >= index:
                return frame if number == index else None
        return None
