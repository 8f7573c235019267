# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of video files, based on PyAV: the frames by number, and their times.

Training, testing, prediction and live detection all read files with it.
"""
import io
import os
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import islice
from typing import Any

import av
import numpy as np

from .remote_files import local_path

# Containers whose packets have correct time stamps of frames.
WITH_TIMES = {'mov', 'matroska'}
# Suffixes of containers. A raw stream in such a file lacks its beginning.
SUFFIXES = '.mp4', '.mov', '.mkv', '.webm', '.avi'
# An MPEG-4 packet with fewer bytes may repeat a frame instead of coding one.
MIN_CODED = 12
NO_TIMES = av.format.Flags.no_timestamps.value
# Objects with an open container, of this process and of the parent process.
_owners: weakref.WeakSet = weakref.WeakSet()
_inherited: list = []


def once_per_file(function: Callable[..., Any], size: int = 1 << 13
                  ) -> Callable[..., Any]:
    """Cache ``size`` results of a function of a path until a file changes."""
    @lru_cache(size)
    def of_version(path, time, size, *args):
        return function(path, *args)

    @wraps(function)
    def cached(source, *args):
        if isinstance(source, bytes):
            return function(source, *args)
        stat = os.stat(source)
        return of_version(source, stat.st_mtime_ns, stat.st_size, *args)

    return cached


class FrameTable:
    """Frames of a video file, found in its packets almost without decoding.

    Frames before the first key frame, and frames that an edit list hides, are
    not counted. A packet is not always a frame: VP8 has packets that are never
    shown, and MPEG-4 has packets that repeat a frame. A file with the latter
    is decoded once, to count its frames. If a file is cut off, its last,
    incomplete frame is not counted either.

    Args:
        source: Path or contents of the file.

    Attributes:
        formats: Names of the container format.
        fps: Average frames per second.
        has_b_frames: True if a frame may depend on a later frame.
        skipped: Number of packets before the first key frame.
        hidden: Number of packets that an edit list hides.
        uncoded: Number of packets that are not frames.
        is_open: True if a frame is shown before the key frame that it follows
            in the file (an open group of pictures).
        joins: Numbers of the frames at which the time stamps start anew, in a
            transport stream that was joined from several recordings.
        has_ties: True if some frames lack a time stamp or share one.
        stamps: Sorted time stamps of the frames, in units of the stream; None
            if a frame lacks one.
        keys: Numbers of the key frames that can be sought by time stamp; only
            0 in containers other than mp4, mov, mkv and webm.
        times: Start of each frame and end of the last one, in seconds from
            the start of the file, [T + 1], ascending.

    Raises:
        ValueError: If the file lacks a video stream, its beginning or all
            frames.
    """

    def __init__(self, source: str | bytes) -> None:
        with open_container(source) as container:
            if (isinstance(source, str) and source.lower().endswith(SUFFIXES)
                    and container.format.flags & NO_TIMES):
                raise ValueError(
                    f'expected a container such as mp4, got a raw '
                    f'{container.format.name} stream; the beginning of the '
                    'file is missing')
            stream = video_stream(container)
            self.formats = {*container.format.name.split(',')}
            self.fps = float(stream.average_rate or 0) or 25.
            self.has_b_frames = stream.codec_context.has_b_frames
            codec = stream.codec.canonical_name
            packets, self.uncoded, joins = _read_packets(
                container, stream, codec)
            start, base = container.start_time, float(stream.time_base)
        self.skipped = next(
            (i for i, packet in enumerate(packets) if packet[1]), 0)
        packets = packets[self.skipped:]
        self.is_timed = bool(self.formats & WITH_TIMES)
        leading = list(_leading(packets))
        self.is_open = bool(leading)
        shown = [packet for packet in packets if not packet[2]]
        self.hidden = len(packets) - len(shown)
        stamps = [packet[0] for packet in shown]
        begins = [packet[0] for packet in packets if packet[1]]
        if begins and any(key == begins[0] for _, key in leading):
            # A decoder skips frames that depend on a frame before the first
            # key frame.
            with open_container(source) as container:
                first = next(decode(container, self.skipped)).pts
            stamps = [time for time in stamps
                      if time is not None and time >= first]
        if not stamps:
            raise ValueError('the file contains no frames')
        if codec == 'mpeg4' and any(
                packet[3] < MIN_CODED for packet in packets):
            number, stamps = len(stamps), _decoded_stamps(source, self.skipped)
            self.uncoded += number - len(stamps)
            if 'avi' in self.formats and None not in stamps:
                # The decoder adds the delay of B-frames.
                shift = packets[0][0] - stamps[0]
                stamps = [time + shift for time in stamps]
        self.joins: set[int] = set()
        self.has_ties = None in stamps or len({*stamps}) < len(stamps)
        self.stamps: array | None = None
        self.keys = [0]
        if None in stamps:
            begin = np.arange(len(stamps)) / self.fps
        else:
            self.stamps = array('q', sorted(stamps))
            self.joins = {*np.searchsorted(self.stamps, joins).tolist()}
            begin = _without_ties(self.stamps, 1 / (self.fps * base)) * base
            begin -= begin[0] if start is None else start / av.time_base
            if self.is_timed:
                keys = np.searchsorted(self.stamps, sorted(begins))
                self.keys = [0, *(
                    key for key in keys.tolist() if 0 < key < len(begin)
                    and self.stamps[key - 1] < self.stamps[key])]
        last = np.median(np.diff(begin)) if len(begin) > 1 else 1 / self.fps
        self.times = np.append(begin, begin[-1] + last)
        # All readers of the file in this process share the table.
        self.times.flags.writeable = False


# A long video has thousands of packets, which take longer to read than a clip.
frame_table = once_per_file(FrameTable, 128)


class VideoReader:
    """Reader of the frames of a video file by number, counted from 0.

    Methods have the same names as in decord's reader. In mp4, mov, mkv and
    webm files, the reader seeks by time stamp; other files are decoded from
    the start. If the size of the frames changes, frames are scaled to the
    size of the first one.

    Args:
        source: Path, URL (see :func:`~mmvidattn.utils.remote_files.
            local_path`) or contents of the file.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.

    Attributes:
        table: The :class:`FrameTable` of the file.
        times: ``times`` of the table.

    Raises:
        ValueError: If the file lacks a video stream.
    """

    def __init__(self, source: str | os.PathLike | bytes,
                 num_threads: int = 1) -> None:
        if not isinstance(source, bytes):
            source = str(local_path(source))
        self._source = source
        self._num_threads = num_threads
        self.table = frame_table(source)
        self.times = self.table.times
        self._size: tuple[int, int] | None = None
        keep_in_forks(self)
        self._open()

    def __len__(self) -> int:
        return len(self.times) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """Return a frame, uint8 [H, W, 3], RGB."""
        return self.get_frames([index])[0]

    def __del__(self) -> None:
        # Close explicitly, because PyAV's containers and streams are a
        # reference cycle.
        if hasattr(self, '_container'):
            self._decoded.close()
            self._container.close()

    def get_batch(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return frames in the order of ``indices``, uint8 [T, H, W, 3], RGB.

        Raises:
            IndexError: If an index is out of range.
            ValueError: If a frame cannot be read.
        """
        return np.stack(self.get_frames(indices))

    def get_frames(self, indices: Sequence[int] | np.ndarray
                   ) -> list[np.ndarray]:
        """Return the frames of :meth:`get_batch` as a list."""
        indices = np.asarray(indices, dtype=np.int64).ravel()
        if indices.size and not (0 <= indices.min()
                                 and indices.max() < len(self)):
            raise IndexError(
                f'frames must be from 0 to {len(self) - 1}, got '
                f'{indices.min()} to {indices.max()}')
        counts = Counter(indices.tolist())
        decoded = {index: self._frame(index) for index in sorted(counts)}
        # Each frame is a new array, which transforms may change.
        return [decoded[index].copy() if counts[index] > 1 else decoded[index]
                for index in indices.tolist()]

    def frames(self) -> Iterator[np.ndarray]:
        """Yield all frames in order, each uint8 [H, W, 3], RGB."""
        return map(self._frame, range(len(self)))

    def get_avg_fps(self) -> float:
        """Return the average number of frames per second."""
        return self.table.fps

    def _open(self) -> None:
        self.__del__()
        self._container = open_container(self._source)
        self._stream = video_stream(self._container)
        self._stream.codec_context.thread_count = self._num_threads
        if self._num_threads != 1:
            self._stream.thread_type = 'AUTO'
        self._header_size = self._stream.width, self._stream.height
        self._decoded = decode(self._container, self.table.skipped)
        # Number of the frame that is decoded next.
        self._next, self._has_sought = 0, False

    def _frame(self, index: int) -> np.ndarray:
        """Decode a frame, uint8 [H, W, 3], RGB."""
        key = self.table.keys[bisect_right(self.table.keys, index) - 1]
        if index < self._next or key > self._next:
            self._seek(key) if key else self._open()
        frame = self._find(index)
        if frame is None and self._has_sought:
            # Retry from the start: some key frames depend on earlier frames
            # (intra refresh).
            self._open()
            frame = self._find(index)
        if frame is None:
            raise ValueError(f'frame {index} of {len(self)} cannot be read')
        if self._size is None:
            self._size = frame.width, frame.height
            if index and self._size != self._header_size:
                with open_container(self._source) as container:
                    first = next(decode(container, self.table.skipped))
                    self._size = first.width, first.height
        return to_rgb(frame, self._size)

    def _seek(self, key: int) -> None:
        self._container.seek(self.table.stamps[key], stream=self._stream)
        self._decoded = decode(self._container)
        self._next, self._has_sought = key, True

    def _find(self, index: int) -> av.VideoFrame | None:
        """Decode up to a frame; None if the decoder skips it."""
        for frame in self._decoded:
            number = self._number_of(frame)
            if number is None:
                # Hidden by an edit list, or shown before the key frame.
                continue
            self._next = number + 1
            if number >= index:
                return frame if number == index else None
        return None

    def _number_of(self, frame: av.VideoFrame) -> int | None:
        stamps = self.table.stamps
        if not self.table.is_timed or stamps is None:
            return self._next
        if frame.pts is None:
            return None
        number = bisect_left(stamps, frame.pts)
        # Of frames that share a time stamp, the next one.
        if number < self._next < len(stamps) and \
                stamps[self._next] == frame.pts:
            number = self._next
        return number if number < len(stamps) and \
            stamps[number] == frame.pts else None


def open_container(source: str | bytes) -> av.container.InputContainer:
    """Open a file for reading, from its path or its contents.

    Raises:
        ValueError: If the path is a folder, a device or a pipe, which could
            block, or if the file is not a video.
    """
    is_path = isinstance(source, str)
    if is_path and os.path.exists(source) and not os.path.isfile(source):
        raise ValueError(f'{source} is not a file')
    # ffmpeg would take the text before a colon for a protocol.
    file = (f'file:{source}' if ':' in source else source) if is_path else \
        io.BytesIO(source)
    try:
        return av.open(file)
    except av.InvalidDataError as error:
        size = os.path.getsize(source) if is_path else len(source)
        raise ValueError(
            'the file is not a video, or it is damaged or incomplete' if size
            else 'the file is empty') from error


def check_end(path: str) -> None:
    """Check that a file has not been cut off, by its header and last packet.

    Raises:
        ValueError: If the last packet of the video is incomplete, or all
            streams end more than a second before the end in the header.
    """
    with open_container(path) as container:
        video, last, end = video_stream(container), None, 0.
        start = (container.start_time or 0) / av.time_base
        for packet in container.demux():
            if packet.size and packet.pts is not None:
                time = packet.pts + (packet.duration or 0)
                end = max(end, float(time * packet.time_base) - start)
                if packet.stream == video:
                    last = packet
        length = (container.duration or 0) / av.time_base
        if 'matroska' in container.format.name:
            # The length in its header counts from time 0.
            length -= start
    if last is not None and last.is_corrupt or end < length - 1:
        raise ValueError(f'the file is cut off after {end:.2f} s'
                         + f' of {length:.2f} s' * (end < length - .01))


def video_stream(container: av.container.InputContainer
                 ) -> av.video.stream.VideoStream:
    """Return the video stream that ffmpeg prefers, but no cover picture.

    Raises:
        ValueError: If the file lacks a video stream.
    """
    streams = [stream for stream in container.streams.video if not (
        stream.disposition & av.stream.Disposition.attached_pic)]
    if not streams:
        raise ValueError('the file lacks a video stream')
    best = container.streams.best('video')
    return best if best in streams else streams[0]


def decode(container: av.container.InputContainer, skipped: int = 0
           ) -> Iterator[av.VideoFrame]:
    """Decode the video stream from the container's position.

    The first ``skipped`` packets are left out.
    """
    packets = container.demux(video_stream(container))
    for packet in islice(packets, skipped, None):
        yield from packet.decode()


def to_rgb(frame: av.VideoFrame, size: tuple[int, int]) -> np.ndarray:
    """Convert a frame to RGB, uint8 [H, W, 3], with the file's rotation.

    The fields of an interlaced frame are converted as one picture, like in
    decord and the ffmpeg program. ``size`` is the width and height before the
    rotation.
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
    image = frame.to_ndarray(format='rgb24', width=size[0], height=size[1],
                             threads=1)
    return np.ascontiguousarray(np.rot90(image, rotation // 90))


def keep_in_forks(owner: Any) -> None:
    """Keep an object with an open container alive in forked processes.

    Closing a container waits for its decoding threads, which do not exist in a
    forked process. A forked process would therefore wait forever if Python's
    garbage collection closed the container.
    """
    _owners.add(owner)


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=lambda: _inherited.extend(_owners))


def _read_packets(container: av.container.InputContainer,
                  stream: av.video.stream.VideoStream, codec: str
                  ) -> tuple[list[tuple[int | None, bool, bool, int]], int,
                             list[int]]:
    """Return time stamp, is key, is hidden and size of each coded frame.

    Also return the number of packets that are never shown, and the time stamps
    at which joined recordings begin.

    The time stamps of recordings that were joined to one transport stream
    start anew; later ones are shifted to follow the earlier ones. In an avi,
    a frame begins at its place in the file.
    """
    formats = {*container.format.name.split(',')}
    is_timed = bool(formats & WITH_TIMES)
    packets, uncoded, shift, last, is_cut = [], 0, 0, None, False
    joins = []
    for packet in container.demux(stream):
        if not packet.size:
            continue
        # A VP8 packet may be only a reference for others.
        if codec == 'vp8' and not memoryview(packet)[0] & 16:
            uncoded += 1
            continue
        time = packet.pts
        if not is_timed and packet.dts is not None:
            if time is None or 'avi' in formats:
                time = packet.dts
            if last is not None and packet.dts + shift < last:
                shift = last + (packet.duration or 1) - packet.dts
                joins.append(packet.dts + shift)
            last = packet.dts + shift
            time += shift
        packets.append((time, packet.is_keyframe, packet.is_discard,
                        packet.size))
        is_cut = packet.is_corrupt
    return packets[:-1] if is_cut else packets, uncoded, joins


@once_per_file
def _decoded_stamps(source: str | bytes, skipped: int) -> list[int | None]:
    with open_container(source) as container:
        return [frame.pts for frame in decode(container, skipped)]


def _without_ties(stamps: Sequence[int], duration: float) -> np.ndarray:
    """Spread frames with equal, sorted time stamps up to the next time stamp.

    The last frame has the given duration, in the same unit.
    """
    values, counts = np.unique(stamps, return_counts=True)
    gaps = np.diff(values, append=values[-1] + duration)
    within = np.concatenate([np.arange(count) for count in counts])
    return np.repeat(values, counts) + within * np.repeat(
        gaps / counts, counts)


def _leading(packets: Sequence[tuple]) -> Iterator[tuple[Any, int]]:
    """Yield the time stamps of each frame that is shown before the key frame
    that it follows, and of this key frame.
    """
    key = None
    for time, is_key, *_ in packets:
        if is_key:
            key = time
        elif key is not None and (time is None or time < key):
            yield time, key
