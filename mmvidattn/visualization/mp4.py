# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Writers of MP4 files."""
import io
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from ..utils.printable import echo

# Encoders, the best first: two of H.264, and one of MPEG-4 Part 2, which
# browsers do not play. PyAV's wheels have the first one; builds without GPL
# code may lack it.
ENCODERS = dict(
    libx264=dict(preset='veryfast', crf='23'), libopenh264=dict(b='4M'),
    mpeg4=dict(b='4M'))
# For rates such as 30000 / 1001; MPEG-4 has at most 65535 ticks per second.
MAX_DENOMINATOR, MAX_TICKS = 1001, 65535


class _WholeWrites(io.FileIO):
    """File whose writes are complete or raise an ``OSError``."""

    def write(self, data: bytes) -> int:
        """Write all of the data."""
        rest = memoryview(data)
        while rest:
            rest = rest[super().write(rest):]
        return len(data)


class Mp4File:
    """MP4 file, written by PyAV.

    A line on stderr reports that the file is not in H.264.

    Args:
        path: Path of the file.
        fps: Frames per second.
        size: Width and height of the frames. If they are odd, the last column
            or row is cropped.

    Raises:
        OSError: If the file cannot be written.
    """

    def __init__(self, path: Path, fps: float, size: tuple[int, int]) -> None:
        # Open the file here, because PyAV leaks the handle if it cannot write
        # the header.
        self._output = _WholeWrites(path, 'w')
        try:
            self._start(path, fps, size)
        except BaseException:
            self._output.close()
            raise

    def _start(self, path: Path, fps: float, size: tuple[int, int]) -> None:
        # Put the index first, so that players can start during a download.
        self._file = av.open(self._output, 'w', format='mp4',
                             options=dict(movflags='faststart'))
        encoder = next(name for name in ENCODERS
                       if name in av.codecs_available)
        if encoder == 'mpeg4':
            echo(f'note: {path} is in MPEG-4 Part 2, because PyAV lacks an '
                 'H.264 encoder; browsers may not play it', file=sys.stderr)
        rate = Fraction(fps).limit_denominator(
            min(MAX_DENOMINATOR, int(MAX_TICKS / fps)))
        self._stream = self._file.add_stream(
            encoder, rate=rate, options=ENCODERS[encoder])
        self._width, self._height = (side // 2 * 2 for side in size)
        self._stream.width, self._stream.height = self._width, self._height
        self._stream.pix_fmt = 'yuv420p'
        # Leave the other cores to the model of a live run.
        self._stream.codec_context.thread_count = 1
        # Write the header now, so that disk errors are raised here.
        self._file.start_encoding()

    def write(self, image: np.ndarray) -> None:
        """Write an RGB image [H, W, 3], uint8."""
        image = np.ascontiguousarray(image[:self._height, :self._width])
        frame = av.VideoFrame.from_ndarray(image, 'rgb24')
        self._file.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Finish the file, so that players can read it.

        Raises:
            OSError: If the file cannot be written. It is closed anyway.
        """
        with self._output:
            try:
                self._file.mux(self._stream.encode(None))
                self._file.close()
            except av.error.PyAVCallbackError as error:
                # After another failed write.
                raise OSError(f'cannot write {self._output.name}') from error
