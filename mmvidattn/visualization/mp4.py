# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Writers of MP4 files."""
import io
import sys
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np

from ..utils.printable import echo

# Encoders of H.264, which browsers can play. PyAV's wheels have the first one;
# builds without GPL code may have the second. OpenCV's wheels have neither.
ENCODERS = dict(
    libx264=dict(preset='veryfast', crf='23'), libopenh264=dict(b='4M'))
# For rates such as 30000 / 1001.
MAX_DENOMINATOR = 1001


class _WholeWrites(io.FileIO):
    """File whose writes are complete or raise an ``OSError``."""

    def write(self, data: bytes) -> int:
        """Write all of the data."""
        rest = memoryview(data)
        while rest:
            rest = rest[super().write(rest):]
        return len(data)


class H264File:
    """H.264 file, written by PyAV.

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
            self._start(fps, size)
        except BaseException:
            self._output.close()
            raise

    def _start(self, fps: float, size: tuple[int, int]) -> None:
        import av
        self._new_frame = av.VideoFrame.from_ndarray
        # Put the index first, so that players can start during a download.
        self._file = av.open(self._output, 'w', format='mp4',
                             options=dict(movflags='faststart'))
        encoder = find_h264_encoder()
        self._stream = self._file.add_stream(
            encoder, rate=Fraction(fps).limit_denominator(MAX_DENOMINATOR),
            options=ENCODERS[encoder])
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
        self._file.mux(self._stream.encode(self._new_frame(image, 'rgb24')))

    def close(self) -> None:
        """Finish the file, so that players can read it.

        Raises:
            OSError: If the file cannot be written. It is closed anyway.
        """
        with self._output:
            self._file.mux(self._stream.encode(None))
            self._file.close()


class Mpeg4File:
    """MPEG-4 Part 2 (mp4v) file, written by OpenCV.

    Browsers do not play this codec. See :class:`H264File` for the arguments.
    """

    def __init__(self, path: Path, fps: float, size: tuple[int, int]) -> None:
        self._writer = cv2.VideoWriter(
            str(path), cv2.VideoWriter_fourcc(*'mp4v'), fps, size)
        if not self._writer.isOpened():
            raise OSError(f'cannot write {path}')
        self._path = path

    def write(self, image: np.ndarray) -> None:
        """Write an RGB image [H, W, 3], uint8."""
        self._writer.write(image[..., ::-1])

    def close(self) -> None:
        """Finish the file, so that players can read it.

        Raises:
            OSError: If the file cannot be written.
        """
        self._writer.release()
        # OpenCV does not report failed writes.
        if not _is_complete(self._path):
            raise OSError(f'cannot write {self._path}; is the disk full?')


def _is_complete(path: Path) -> bool:
    """Return True if a file has complete MP4 boxes that end with an index."""
    end, kind = 0, b''
    with open(path, 'rb') as file:
        while header := file.read(8):
            size, kind = int.from_bytes(header[:4], 'big'), header[4:]
            if size == 1:
                # The size of a box of 4 GiB or more follows the header.
                size = int.from_bytes(file.read(8), 'big')
            if size < 8:
                return False
            end = file.seek(end + size)
    return kind == b'moov' and end == path.stat().st_size


def open_mp4(path: str | Path, fps: float,
             size: tuple[int, int]) -> H264File | Mpeg4File:
    """Open an MP4 file for writing: H.264 if PyAV can encode it, else mp4v.

    A line on stderr reports mp4v. See :class:`H264File` for the arguments.
    """
    if find_h264_encoder():
        return H264File(Path(path), fps, size)
    echo(f'note: {path} is in MPEG-4 Part 2, because PyAV lacks an H.264 '
         'encoder; browsers may not play it', file=sys.stderr)
    return Mpeg4File(Path(path), fps, size)


def find_h264_encoder() -> str | None:
    """Return the name of PyAV's H.264 encoder, or None if it has none."""
    try:
        import av
    except ImportError:
        return None
    return next((name for name in ENCODERS if name in av.codecs_available),
                None)
