# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import tempfile
from collections.abc import Sequence

import cv2
import numpy as np

from .base import VideoReader, spans
from .torchcodec_reader import SEEK_MODES


class OpenCVReader(VideoReader):
    """A video file, read by OpenCV.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
        seek_mode: ``'exact'`` decodes from the start on, and once more for a
            frame before the last one; ``'approximate'`` lets OpenCV seek,
            which takes other frames of some files.

    Raises:
        ValueError: If it cannot be opened, or a frame cannot be read.
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
        self._begins: np.ndarray | None = None
        self._open()
        self._length = int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT))
        if self._length < 1:
            # A header without a count.
            self._length = len(self._grab_all())
            self._open()

    def __len__(self) -> int:
        return self._length

    def get_avg_fps(self) -> float:
        return float(self._capture.get(cv2.CAP_PROP_FPS))

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        if self._begins is None:
            begins = self._grab_all()
            self._open()
            fps = self.get_avg_fps()
            missing = np.arange(len(begins), self._length) / fps
            self._begins = np.append(begins, missing)[:self._length]
        return spans(self._begins, self.get_avg_fps())[np.asarray(indices)]

    def _open(self) -> None:
        self._capture = cv2.VideoCapture(
            str(self._path), cv2.CAP_FFMPEG,
            [cv2.CAP_PROP_N_THREADS, self._num_threads])
        if not self._capture.isOpened():
            raise ValueError('OpenCV cannot open it')
        # The number of the frame that is decoded next.
        self._next = 0

    def _grab_all(self) -> np.ndarray:
        """When each frame begins, in seconds."""
        self._open()
        begins = []
        while self._capture.grab():
            begins.append(self._capture.get(cv2.CAP_PROP_POS_MSEC) / 1000)
        return np.array(begins)

    def _read(self, indices: list[int]) -> np.ndarray:
        found = {}
        for index in sorted({*indices}):
            found[index] = self._frame(index)
        return np.stack([found[index] for index in indices])

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
            raise ValueError(f'frame {index} of {self._length} cannot be '
                             'read')
        self._next += 1
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
