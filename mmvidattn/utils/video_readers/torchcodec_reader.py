# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import numpy as np

from .base import VideoReader
from .packets import Packets, refuse

SEEK_MODES = 'exact', 'approximate'
# Frames whose time stamps are looked up at a time.
CHUNK = 16


class TorchCodecReader(VideoReader):
    """A video file, read by torchcodec.

    Frames are found by their time stamps. Files whose time stamps torchcodec
    0.13 misreads are refused: avi with B-frames, MPEG transport and program
    streams, H.264 with open groups of pictures, files that do not begin with
    a key frame, and files cut by an edit list.

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
        why = _why_wrong(Packets(source))
        if why:
            refuse('torchcodec', source, why)
        self._decoder = VideoDecoder(
            source, dimension_order='NHWC', num_ffmpeg_threads=num_threads,
            seek_mode=seek_mode, device=device)

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


def _why_wrong(packets: Packets) -> str:
    """Return why torchcodec takes wrong frames; empty if it does not."""
    if 'mpeg' in packets.formats:
        return 'it is an MPEG program stream'
    if 'mpegts' in packets.formats:
        return 'it is an MPEG transport stream'
    if 'avi' in packets.formats and packets.has_b_frames:
        return 'it is an avi with B-frames'
    if packets.skipped or packets.late:
        return 'the file does not begin with a key frame'
    if packets.hidden:
        return f'it counts {packets.hidden} frames that an edit list hides'
    if packets.is_open and packets.codec == 'h264':
        return 'it is H.264 with open groups of pictures'
    return ''
