# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Packets and frames of a video file, read with PyAV.

Other readers use them to detect files that their decoder misreads.
"""
import io
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, NoReturn

import av
import numpy as np

from .base import VideoReader, spans

# Containers whose packets have correct time stamps of frames.
WITH_TIMES = {'mov', 'matroska'}
# Number of frames at the start of a file whose interlaced flag is read.
FIRST_FRAMES = 32
# Objects with an open container, of this process and of the parent process.
_owners: weakref.WeakSet = weakref.WeakSet()
_inherited: list = []


class Packets:
    """Packets of a video stream, starting at its first key frame.

    Args:
        source: Path or contents of the file.

    Attributes:
        formats: Names of the container format.
        codec: Name of the codec.
        fps: Average frames per second.
        base: Seconds per unit of a time stamp.
        has_b_frames: True if a frame may depend on a later frame.
        skipped: Number of packets before the first key frame.
        hidden: Number of packets that an edit list hides.
        late: Number of frames that are shown before the first key frame and
            cannot be decoded.
        is_open: True if a frame is shown before the key frame that it follows
            in the file (an open group of pictures).
        times: Sorted time stamps of the frames; None if a frame lacks one or
            two frames share one.
        keys: Numbers of the key frames that can be sought by time stamp; only
            0 in containers other than mp4, mov, mkv and webm.
        length: Number of frames.

    Raises:
        ValueError: If the file lacks a video stream.
    """

    def __init__(self, source: str | bytes) -> None:
        with open_container(source) as container:
            stream = video_stream(container)
            packets = [
                (packet.pts, packet.is_keyframe, packet.is_discard)
                for packet in container.demux(stream) if packet.size]
            self.formats = {*container.format.name.split(',')}
            self.codec = stream.codec.canonical_name
            self.fps = float(stream.average_rate or 0) or 25.
            self.base = float(stream.time_base)
            self.has_b_frames = stream.codec_context.has_b_frames
        self.skipped = next(
            (i for i, packet in enumerate(packets) if packet[1]), 0)
        packets = packets[self.skipped:]
        is_timed = bool(self.formats & WITH_TIMES)
        # Matroska omits time stamps below 0.
        stamps = [time for time, _, _ in packets
                  if time is not None or not is_timed]
        shown = [time for time, _, is_hidden in packets if not is_hidden]
        self.hidden = len(packets) - len(shown)
        self.late, self.is_open = 0, False
        self.times: list[int] | None = None
        self.keys = [0]
        if None not in stamps and len({*stamps}) == len(stamps):
            begins = [time for time, is_key, _ in packets if is_key]
            leading = list(_leading(packets))
            self.is_open = bool(leading)
            if any(key == begins[0] for _, key in leading):
                # A decoder skips frames that depend on a frame before the
                # first key frame.
                with open_container(source) as container:
                    first = next(decode(container, self.skipped)).pts
                shown = [time for time in shown
                         if time is not None and time >= first]
                self.late = len(packets) - self.hidden - len(shown)
            self.times = sorted(shown)
            if is_timed:
                self.keys = np.searchsorted(
                    self.times, sorted(begins)).tolist()
        self.length = len(shown)

    def spans(self) -> np.ndarray:
        """Return the seconds at which frames begin and end, [T, 2]."""
        begins = np.arange(self.length) / self.fps if self.times is None \
            else np.array(self.times) * self.base
        return spans(begins, self.fps)


class PacketsReader(VideoReader):
    """Base of readers that decode one frame at a time.

    Attributes:
        packets: Packets of the file.
    """
    packets: Packets

    def __len__(self) -> int:
        return self.packets.length

    def get_frame_timestamp(self, indices: Sequence[int] | np.ndarray
                            ) -> np.ndarray:
        return self.packets.spans()[np.asarray(indices)]

    def frames(self) -> Iterator[np.ndarray]:
        return map(self._frame, range(len(self)))

    def _read(self, indices: list[int]) -> np.ndarray:
        frames = {index: self._frame(index) for index in sorted({*indices})}
        return np.stack([frames[index] for index in indices])

    def _frame(self, index: int) -> np.ndarray:
        """Decode a frame, uint8 [H, W, 3], RGB."""
        raise NotImplementedError


def open_container(source: str | bytes) -> av.container.InputContainer:
    """Open a file for reading, from its path or its contents."""
    return av.open(io.BytesIO(source) if isinstance(source, bytes) else source)


def keep_in_forks(owner: Any) -> None:
    """Keep an object with an open container alive in forked processes.

    Closing a container waits for its decoding threads, which do not exist in a
    forked process. A forked process would therefore wait forever if Python's
    garbage collection closed the container.
    """
    _owners.add(owner)


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=lambda: _inherited.extend(_owners))


def video_stream(container: av.container.InputContainer
                 ) -> av.video.stream.VideoStream:
    """Return the first video stream.

    Raises:
        ValueError: If the file lacks a video stream.
    """
    if not container.streams.video:
        raise ValueError('the file lacks a video stream')
    return container.streams.video[0]


def decode(container: av.container.InputContainer, skipped: int = 0
           ) -> Iterator[av.VideoFrame]:
    """Decode the first video stream from the position of the container.

    Args:
        container: An opened file.
        skipped: Number of packets to skip. Defaults to 0.
    """
    packets = container.demux(video_stream(container))
    for packet in islice(packets, skipped, None):
        yield from packet.decode()


def to_rgb(frame: av.VideoFrame) -> np.ndarray:
    """Convert a frame to RGB, uint8 [H, W, 3], with the file's rotation.

    The fields of an interlaced frame are converted as one picture, like in
    decord, torchcodec and the ffmpeg program.
    """
    rotation = frame.rotation
    if frame.interlaced_frame:
        graph = av.filter.Graph()
        graph.link_nodes(
            graph.add_buffer(width=frame.width, height=frame.height,
                             format=frame.format, time_base=frame.time_base),
            graph.add('setfield', 'prog'), graph.add('buffersink')).configure()
        graph.push(frame)
        frame = graph.pull()
    # Use one thread, because starting threads takes longer than converting a
    # small frame.
    image = frame.to_ndarray(format='rgb24', threads=1)
    return np.ascontiguousarray(np.rot90(image, rotation // 90))


def once_per_file(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Cache the result of a function of a path until the file changes."""
    @lru_cache(1 << 16)
    def of_version(path, time, size):
        return function(path)

    @wraps(function)
    def cached(source):
        if isinstance(source, bytes):
            return function(source)
        stat = os.stat(source)
        return of_version(source, stat.st_mtime_ns, stat.st_size)

    return cached


@once_per_file
def is_interlaced(source: str | bytes) -> bool:
    """Return True if a frame near the start, or a key frame, is interlaced."""
    with open_container(source) as container:
        if any(frame.interlaced_frame
               for frame in islice(decode(container), FIRST_FRAMES)):
            return True
    with open_container(source) as container:
        video_stream(container).codec_context.skip_frame = 'NONKEY'
        return any(frame.interlaced_frame for frame in decode(container))


def refuse(backend: str, source: str | bytes, why: str) -> NoReturn:
    """Raise an error that names the file and a backend that can read it."""
    name = 'the video' if isinstance(source, bytes) else source
    raise ValueError(f'{backend} returns wrong frames of {name}, because '
                     f'{why}; decode it with video_backend=pyav')


def _leading(packets: list[tuple]) -> Iterator[tuple[Any, int]]:
    """Find frames that are shown before the key frame that they follow.

    Yields:
        Time stamps of the frame and of the key frame.
    """
    key = None
    for time, is_key, _ in packets:
        if is_key:
            key = time
        elif key is not None and (time is None or time < key):
            yield time, key
