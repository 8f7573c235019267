# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import tempfile

import cv2
import numpy as np

from .packets import Packets, PacketsReader, is_interlaced, refuse
from .torchcodec_reader import SEEK_MODES


class OpenCVReader(PacketsReader):
    """A video file, read by OpenCV.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
        seek_mode: ``'exact'`` decodes from the start on, and once more for a
            frame before the last one; ``'approximate'`` lets OpenCV seek,
            which takes other frames of some files.

    Raises:
        ValueError: If it cannot be opened, if a frame cannot be read, or if
            OpenCV would take wrong frames (of interlaced video OpenCV 5.0
            returns memory that it has not written).
    """

    def __init__(self, source: str | bytes, num_threads: int = 1,
                 seek_mode: str = 'exact') -> None:
        if seek_mode not in SEEK_MODES:
            raise ValueError(f'seek_mode must be one of {SEEK_MODES}, got '
                             f'{seek_mode!r}')
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
        # The number of the frame that is decoded next.
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
