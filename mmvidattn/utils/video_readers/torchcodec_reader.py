# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import numpy as np

from ..arguments import Natural, check_arguments
from .base import SeekMode, VideoReader
from .packets import Packets, refuse

# Number of frames whose time stamps are looked up at once.
CHUNK = 16


@check_arguments
class TorchCodecReader(VideoReader):
    """Reader that uses torchcodec.

    The reader seeks by time stamp. Files whose time stamps torchcodec 0.13
    misreads are an error: avi with B-frames, MPEG transport and program
    streams, H.264 with open groups of pictures, files that do not begin with a
    key frame, and files cut by an edit list.

    Args:
        source: Path or contents of the file.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.
            Defaults to 1.
        seek_mode: ``'exact'`` scans the file on opening, to get the time of
            each frame. ``'approximate'`` assumes a constant rate, and opens
            long files faster. Defaults to ``'exact'``.
        device: Device that decodes. ``'cuda'`` is passed on, but not tested.
            Defaults to ``'cpu'``.

    Raises:
        ValueError: If torchcodec would return wrong frames of this file.
    """
    # torchcodec returns a time stamp only with the decoded frame.
    has_quick_times = False

    def __init__(self, source: str | bytes, num_threads: Natural = 1,
                 seek_mode: SeekMode = 'exact', device: str = 'cpu') -> None:
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
    """Return why torchcodec would return wrong frames, or ''."""
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
