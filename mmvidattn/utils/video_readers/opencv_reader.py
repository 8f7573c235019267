# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import tempfile

import cv2
import numpy as np

from ..arguments import Natural, check_arguments
from .base import SeekMode
from .packets import Packets, PacketsReader, is_interlaced, refuse


@check_arguments
class OpenCVReader(PacketsReader):
    """Reader that uses OpenCV.

    Args:
        source: Path or contents of the file.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.
            Defaults to 1.
        seek_mode: ``'exact'`` decodes all frames in order, and restarts for a
            frame before the last one read. ``'approximate'`` lets OpenCV seek,
            which returns wrong frames of some files. Defaults to ``'exact'``.

    Raises:
        ValueError: If the file cannot be opened, if a frame cannot be read,
            or if OpenCV would return wrong frames (OpenCV 5.0 returns
            uninitialized memory for interlaced video).
    """

    def __init__(self, source: str | bytes, num_threads: Natural = 1,
                 seek_mode: SeekMode = 'exact') -> None:
        self._can_seek = seek_mode == 'approximate'
        self._num_threads = num_threads
        self._file = None
        if isinstance(source, bytes):
            self._file = tempfile.NamedTemporaryFile(suffix='.mp4')
            self._file.write(source)
            self._file.flush()
            source = self._file.name
        self._path = source
        self.packets = Packets(source)
        if self.packets.skipped:
            refuse('OpenCV', source, 'it does not begin with a key frame')
        if is_interlaced(source):
            refuse('OpenCV', source, 'it is interlaced')
        self._open()

    def get_avg_fps(self) -> float:
        return float(self._capture.get(cv2.CAP_PROP_FPS))

    def _open(self) -> None:
        self._capture = cv2.VideoCapture(
            str(self._path), cv2.CAP_FFMPEG,
            [cv2.CAP_PROP_N_THREADS, self._num_threads])
        if not self._capture.isOpened():
            raise ValueError('OpenCV cannot open it')
        # Number of the frame that is decoded next.
        self._next = 0

    def _frame(self, index: int) -> np.ndarray:
        if self._can_seek and index != self._next:
            self._capture.set(cv2.CAP_PROP_POS_FRAMES, index)
            self._next = index
        elif index < self._next:
            self._open()
        while self._next < index and self._capture.grab():
            self._next += 1
        is_read, image = self._capture.read()
        if not is_read or image is None or self._next != index:
            raise ValueError(f'frame {index} of {len(self)} cannot be read')
        self._next += 1
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
