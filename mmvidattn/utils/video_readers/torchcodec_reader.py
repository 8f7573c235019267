# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import mmap
import re
from collections.abc import Sequence

import numpy as np

from .base import VideoReader

SEEK_MODES = 'exact', 'approximate'
# Frames whose time stamps are looked up at a time.
CHUNK = 16
# Codecs each of whose frames stands alone.
INTRA = 'dvvideo', 'ffv1', 'huffyuv', 'mjpeg', 'rawvideo', 'utvideo'
# MPEG-4's header of a frame that needs a later one.
B_FRAME = re.compile(rb'\x00\x00\x01\xb6[\x80-\xbf]')
# Of a file, what is searched for one: thousands of frames.
SEARCHED = 64 << 20


class TorchCodecReader(VideoReader):
    """A video file, read by torchcodec.

    Frames are found by their time stamps. Files that have none, or none that
    torchcodec 0.13 can rely on, are refused, as it takes wrong frames of them:
    avi with frames that need later ones, MPEG transport and program streams.

    Args:
        source: Path of the file, or its bytes.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
        seek_mode: ``'exact'`` scans the file when it is opened, and so knows
            each frame's time; ``'approximate'`` takes that of a constant rate,
            and opens long files faster.
        device: Where to decode; ``'cuda'`` is passed on, and not tested here.

    Raises:
        ValueError: If torchcodec would take wrong frames of this file.
    """
    # Where frames are is known, and when they are shown is not told.
    has_quick_times = False

    def __init__(self, source: str | bytes, num_threads: int = 1,
                 seek_mode: str = 'exact', device: str = 'cpu') -> None:
        if seek_mode not in SEEK_MODES:
            raise ValueError(f'seek_mode must be one of {SEEK_MODES}, got '
                             f'{seek_mode!r}')
        from torchcodec.decoders import VideoDecoder
        self._decoder = VideoDecoder(
            source, dimension_order='NHWC', num_ffmpeg_threads=num_threads,
            seek_mode=seek_mode, device=device)
        why = _why_wrong(source, self._decoder.metadata.codec or '')
        if why:
            raise ValueError(
                f'torchcodec would take wrong frames of it, as {why}: read it '
                'with another video_backend')

    def __len__(self) -> int:
        return len(self._decoder)

    def get_avg_fps(self) -> float:
        return float(self._decoder.metadata.average_fps)

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        indices = np.asarray(indices).ravel().tolist()
        parts = [np.empty((0, 2))]
        for i in range(0, len(indices), CHUNK):
            frames = self._decoder.get_frames_at(indices[i:i + CHUNK])
            begins = frames.pts_seconds.numpy()
            parts.append(np.stack(
                [begins, begins + frames.duration_seconds.numpy()], 1))
        return np.concatenate(parts)

    def _read(self, indices: list[int]) -> np.ndarray:
        return self._decoder.get_frames_at(indices).data.cpu().numpy()


def _why_wrong(source: str | bytes, codec: str) -> str:
    """Why a file has no time stamps to go by; empty if it has."""
    if isinstance(source, bytes):
        return _why_wrong_data(source, codec)
    with open(source, 'rb') as file, mmap.mmap(
            file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _why_wrong_data(data, codec)


def _why_wrong_data(data: bytes | mmap.mmap, codec: str) -> str:
    if data[:4] == b'\0\0\1\xba':
        return 'it is an MPEG program stream'
    if data[:1] == b'\x47' and data[188:189] == b'\x47':
        return 'it is an MPEG transport stream'
    if data[:4] != b'RIFF' or data[8:11] != b'AVI' or codec in INTRA:
        return ''
    if codec.startswith(('mpeg4', 'msmpeg4')):
        found = B_FRAME.search(data, 0, SEARCHED)
        return 'it is an avi with B-frames' if found else ''
    return f'it is an avi of {codec}, which may have B-frames'
