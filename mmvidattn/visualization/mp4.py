# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MP4 files, frame by frame."""
import io
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np

# What browsers play; PyAV's wheels have it, OpenCV's have no H.264.
ENCODER = 'libx264'
# As 30000 / 1001.
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
    """H.264 by PyAV.

    Args:
        path: The file.
        fps: Frames a second.
        size: Width and height of the frames. Where they are odd the last
            column or row is left out.

    Raises:
        OSError: If it cannot be written.
    """

    def __init__(self, path: Path, fps: float, size: tuple[int, int]) -> None:
        # PyAV leaks the handle of a file whose header it cannot write.
        self._output = _WholeWrites(path, 'w')
        try:
            self._start(fps, size)
        except BaseException:
            self._output.close()
            raise

    def _start(self, fps: float, size: tuple[int, int]) -> None:
        import av
        self._new_frame = av.VideoFrame.from_ndarray
        # Its index comes first, so that it is played while it is loaded.
        self._file = av.open(self._output, 'w', format='mp4',
                             options=dict(movflags='faststart'))
        self._stream = self._file.add_stream(
            ENCODER, rate=Fraction(fps).limit_denominator(MAX_DENOMINATOR),
            options=dict(preset='veryfast', crf='23'))
        self._width, self._height = (side // 2 * 2 for side in size)
        self._stream.width, self._stream.height = self._width, self._height
        self._stream.pix_fmt = 'yuv420p'
        # A live run needs the others.
        self._stream.codec_context.thread_count = 1
        # Else an error of the disk would come with the first frames.
        self._file.start_encoding()

    def write(self, image: np.ndarray) -> None:
        """Write an RGB image [H, W, 3], uint8."""
        image = np.ascontiguousarray(image[:self._height, :self._width])
        self._file.mux(self._stream.encode(self._new_frame(image, 'rgb24')))

    def close(self) -> None:
        """Finish the file; without this it cannot be played.

        Raises:
            OSError: If it cannot be written. It is closed all the same.
        """
        with self._output:
            self._file.mux(self._stream.encode(None))
            self._file.close()


class Mpeg4File:
    """MPEG-4 Part 2 (mp4v) by OpenCV, which browsers do not play.

    Args:
        path: The file.
        fps: Frames a second.
        size: Width and height of the frames.

    Raises:
        OSError: If it cannot be written.
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
        """Finish the file; without this it cannot be played.

        Raises:
            OSError: If it cannot be written.
        """
        self._writer.release()
        # OpenCV does not report failed writes.
        if not _is_whole(self._path):
            raise OSError(f'cannot write {self._path}; is the disk full?')


def _is_whole(path: Path) -> bool:
    """Return True if a file consists of complete MP4 boxes, an index last."""
    end, kind = 0, b''
    with open(path, 'rb') as file:
        while header := file.read(8):
            size, kind = int.from_bytes(header[:4], 'big'), header[4:]
            if size == 1:
                # A large box, of frames.
                size = int.from_bytes(file.read(8), 'big')
            if size < 8:
                return False
            end = file.seek(end + size)
    return kind == b'moov' and end == path.stat().st_size


def open_mp4(path: str | Path, fps: float,
             size: tuple[int, int]) -> H264File | Mpeg4File:
    """Open an MP4 file for writing: H.264 where PyAV is there, else mp4v.

    Args:
        path: The file.
        fps: Frames a second.
        size: Width and height of the frames.

    Raises:
        OSError: If it cannot be written.
    """
    kind = H264File if can_encode_h264() else Mpeg4File
    return kind(Path(path), fps, size)


def can_encode_h264() -> bool:
    """Whether PyAV is there, with an encoder of H.264."""
    try:
        import av
    except ImportError:
        return False
    return ENCODER in av.codecs_available
