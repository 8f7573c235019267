# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos of several kinds, with the number of each frame in its pixels."""
import io
import struct
from collections.abc import Callable, Container, Iterable, Sequence
from fractions import Fraction
from itertools import cycle, islice
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.stream import Disposition

WIDTH, HEIGHT, LENGTH, FPS = 96, 64, 40, 20
BITS = 6
# First frame after the cut.
CUT = 17
# Packets that repeat the frame before.
NOT_CODED = 7, 8, 30


def require_backend(name: str) -> None:
    """Skip a test if a backend cannot be used."""
    if name == 'decord':
        pytest.importorskip('decord')


def images() -> list[np.ndarray]:
    """Draw a moving bright block, and blocks for the bits of the number."""
    results = []
    for number in range(LENGTH):
        image = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
        for bit in range(BITS):
            image[:16, 16 * bit:16 * bit + 16] = \
                220 if number >> bit & 1 else 30
        image[30:50, 2 * number:2 * number + 14] = 40, 120, 200
        results.append(image)
    return results


def frames() -> list[av.VideoFrame]:
    return [av.VideoFrame.from_ndarray(image, format='rgb24')
            for image in images()]


def numbers_of(frames: np.ndarray) -> list[int]:
    """Read the numbers in frames [T, H, W, 3]."""
    blocks = np.stack([frames[:, 4:12, 16 * bit + 4:16 * bit + 12].mean(
        (1, 2, 3)) for bit in range(BITS)], 1)
    return ((blocks > 125) @ (1 << np.arange(BITS))).tolist()


def write_opencv(path: Path, shown: Sequence[np.ndarray] | None = None,
                 fps: float = FPS, codec: str = 'mp4v') -> Path:
    """Write a file with OpenCV. MPEG-4, its default, has no B-frames.

    Args:
        path: File; its suffix determines the container.
        shown: RGB images [H, W, 3]. Defaults to the numbered ones.
        fps: Frames per second. Defaults to ``FPS``.
        codec: Four-letter code of the codec. Defaults to 'mp4v'.
    """
    shown = images() if shown is None else shown
    size = shown[0].shape[1::-1] if len(shown) else (WIDTH, HEIGHT)
    writer = cv2.VideoWriter(
        str(path), cv2.VideoWriter_fourcc(*codec), fps, size)
    for image in shown:
        writer.write(image[..., ::-1])
    writer.release()
    return path


def write_gray(path: Path, levels: Iterable[int], fps: float = 5) -> Path:
    """Write a video of gray frames, 32 x 32."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_opencv(path, [np.full((32, 32, 3), level, np.uint8)
                               for level in levels], fps)


def write_video(path: Path, codec: str, lost: Container[int] = (),
                **options: str) -> Path:
    """Write a file with PyAV, without the packets with the numbers ``lost``.
    """
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg lacks {codec} here')
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(codec, rate=FPS)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = options.pop('pix_fmt', 'yuv420p')
        stream.options = options
        packets = [packet for frame in [*frames(), None]
                   for packet in stream.encode(frame)]
        container.mux([packet for number, packet in enumerate(packets)
                       if number not in lost])
    return path


def write_at(path: Path, times: Sequence[float], codec: str = 'mjpeg',
             rate: int = 10, unit: int = 1000) -> Path:
    """Write a video whose frames start at these times in seconds."""
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = 'yuvj420p' if codec == 'mjpeg' else 'yuv420p'
        stream.time_base = Fraction(1, unit)
        stream.codec_context.time_base = Fraction(1, unit)
        shown = [*islice(cycle(images()), len(times)), None]
        for number, image in enumerate(shown):
            if image is not None:
                image = av.VideoFrame.from_ndarray(image, format='rgb24')
                image.pts, image.time_base = number, Fraction(1, unit)
            # Encoders refuse equal times.
            for packet in stream.encode(image):
                packet.pts = packet.dts = round(unit * times[packet.pts])
                container.mux(packet)
    return path


def remux(path: Path, source: Path, edit: Callable[[av.Packet], list],
          start: float = 0., file: object = None, **options: str) -> Path:
    """Copy a video without re-encoding, with a function of its packets.

    Args:
        path: File to write.
        source: File to read.
        edit: Function that returns the packets to write for a packet.
        start: Seconds to skip. Defaults to 0.
        file: Object to write to instead of the file.
        options: Options of the new container.
    """
    with av.open(str(source)) as old, av.open(
            file or str(path), 'w', **options) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        if start:
            old.seek(int(start * av.time_base))
        for packet in old.demux(video=0):
            for one in edit(packet) if packet.size else ():
                one.stream = stream
                new.mux(one)
    return path


def slow_down(path: Path, first: int, factor: int) -> np.ndarray:
    """Slow down an mp4 of constant rate from frame ``first`` on.

    Returns:
        Begin of each frame in seconds.
    """
    source, begins, end = path.rename(path.with_suffix('.constant.mp4')), [], 0

    def slowed(packet):
        nonlocal end
        packet.pts = packet.dts = end
        packet.duration *= factor if len(begins) >= first else 1
        begins.append(float(end * packet.time_base))
        end += packet.duration
        return [packet]

    remux(path, source, slowed)
    source.unlink()
    return np.array(begins)


def cut(path: Path, source: Path, seconds: float) -> Path:
    """Cut the start of an mp4.

    An edit list hides the frames between the key frame and the cut.
    """

    def moved(packet):
        begin = round(seconds / packet.time_base)
        packet.pts, packet.dts = packet.pts - begin, packet.dts - begin
        return [packet]

    return remux(path, source, moved, seconds)


def turn(path: Path) -> Path:
    """Set the rotation of an mp4 to 90 degrees."""
    data = bytearray(path.read_bytes())
    at = data.index(b'tkhd') + 44
    one = 1 << 16
    data[at:at + 36] = struct.pack(
        '>9i', 0, one, 0, -one, 0, 0, HEIGHT * one, 0, 1 << 30)
    path.write_bytes(data)
    return path


def write_tracks(path: Path, kind: str) -> Path:
    """Write a video whose tracks or sizes are unusual.

    Args:
        path: File to write.
        kind: ``'late'`` starts 1 s after its sound, ``'two'`` begins with
            another video of half the size and rate, which is not the default,
            ``'resized'`` doubles its size at half.
    """
    codec = 'libvpx' if kind == 'resized' else 'mpeg4'
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg lacks {codec} here')
    with av.open(str(path), 'w') as new:
        if kind == 'late':
            sound = new.add_stream('aac', rate=8000)
        streams = [new.add_stream(codec, rate=FPS)
                   for _ in range(1 + (kind == 'two'))]
        # Stream, encoder, factor of the size, numbers of the frames.
        stream, encoder, half = streams[0], streams[0].codec_context, 20
        parts = [(stream, encoder, 1, range(LENGTH))]
        if kind == 'two':
            stream.disposition = Disposition.forced
            streams[1].disposition = Disposition.default
            parts = [(stream, encoder, .5, range(0, LENGTH, 2)),
                     (streams[1], streams[1].codec_context, 1, range(LENGTH))]
        if kind == 'resized':
            other = av.CodecContext.create(codec, 'w')
            other.time_base = Fraction(1, FPS)
            parts = [(stream, encoder, 1, range(half)),
                     (stream, other, 2, range(half, LENGTH))]
        for _, encoder, factor, _ in parts:
            encoder.width, encoder.height = (
                int(factor * side) for side in (WIDTH, HEIGHT))
            encoder.pix_fmt = 'yuv420p'
        shown = frames()
        for stream, encoder, _, numbers in parts:
            for number in [*numbers, None]:
                frame = None
                if number is not None:
                    frame = shown[number].reformat(
                        encoder.width, encoder.height)
                    frame.pts = number + FPS * (kind == 'late')
                    frame.time_base = Fraction(1, FPS)
                for packet in encoder.encode(frame):
                    packet.stream = stream
                    new.mux(packet)
        if kind == 'late':
            silence = av.AudioFrame.from_ndarray(
                np.zeros((1, 24 * 1024), np.float32), 'fltp', 'mono')
            silence.rate = 8000
            new.mux([*sound.encode(silence), *sound.encode(None)])
    return path


def not_coded(path: Path, numbers: Container[int]) -> Path:
    """Write MPEG-4 whose packets with these numbers repeat a frame."""
    with av.open(str(path), 'w') as new:
        stream = new.add_stream('mpeg4', rate=FPS)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.options = dict(g='99', bf='0')
        packets = [packet for frame in [*frames(), None]
                   for packet in stream.encode(frame)]
        for number, packet in enumerate(packets):
            if number in numbers:
                data = bytearray(bytes(packet)[:7])
                # Type, time, five bits of its fraction, marker; then the bit
                # that says that a picture follows.
                assert data[:4] == b'\0\0\1\xb6'
                data[5] = data[5] & ~32 & ~31 | 16
                short = av.Packet(bytes(data[:6]))
                short.pts, short.dts = packet.pts, packet.dts
                short.time_base, short.stream = packet.time_base, stream
                packet = short
            new.mux(packet)
    return path


def hide(path: Path, source: Path) -> Path:
    """Add packets to VP8 that are never shown: copies of the key frames."""

    def doubled(packet):
        if not packet.is_keyframe:
            return [packet]
        data = bytearray(bytes(packet))
        data[0] &= ~16
        extra = av.Packet(bytes(data))
        extra.pts = extra.dts = packet.pts + round(0.01 / packet.time_base)
        extra.time_base = packet.time_base
        return [packet, extra]

    return remux(path, source, doubled)


def without_length(path: Path, source: Path) -> Path:
    """Write a webm like a browser's recorder, which cannot seek back."""

    class Pipe(io.BytesIO):
        seek = None

        def seekable(self) -> bool:
            return False

    pipe = Pipe()
    remux(path, source, lambda packet: [packet], file=pipe, format='matroska')
    path.write_bytes(pipe.getvalue())
    return path


# File name, codec and encoder options of each kind that PyAV encodes.
ENCODED = {
    'B-frames': ('b.mp4', 'libx264', dict(bf='3', g='12')),
    'one group': ('one.mp4', 'libx264', dict(bf='3', g='99')),
    'interlaced': ('interlaced.mp4', 'libx264', {
        'g': '12', 'flags': '+ilme+ildct', 'x264-params': 'tff=1'}),
    'interlaced MPEG-2': ('mpeg2.mkv', 'mpeg2video', dict(
        g='12', flags='+ilme+ildct', b='4M')),
    'no key frame first': ('late.mp4', 'libx264', dict(
        g='12', bf='0', lost=range(5))),
    'intra refresh': ('refresh.mp4', 'libx264', {
        'g': '12', 'x264-params': 'intra-refresh=1'}),
    'one group in avi': ('one.avi', 'mpeg4', dict(bf='2', g='99')),
    'open groups': ('open.mkv', 'libx264', {
        'bf': '3', 'g': '12', 'x264-params': 'open-gop=1'}),
    'HEVC': ('hevc.mp4', 'libx265', {
        'g': '12', 'x265-params': 'log-level=none'}),
    'mjpeg avi': ('jpeg.avi', 'mjpeg', dict(pix_fmt='yuvj420p')),
    'B-frames in avi': ('b.avi', 'mpeg4', dict(bf='2', g='12')),
    'VP8': ('vp8.webm', 'libvpx', dict(g='12', b='1M')),
    'transport stream': ('b.ts', 'libx264', dict(bf='2', g='12')),
}


def make(kind: str, folder: Path) -> Path:
    """Create a video of a kind."""
    if kind == 'plain':
        return write_opencv(folder / 'plain.mp4')
    if kind == 'varying rate':
        path = write_opencv(folder / 'varying.mp4')
        slow_down(path, 20, 4)
        return path
    if kind == 'turned':
        return turn(write_opencv(folder / 'turned.mp4'))
    if kind == 'cut':
        return cut(folder / 'cut.mp4', make('B-frames', folder), CUT / FPS)
    if kind == 'cut in its first group':
        return cut(folder / 'first.mp4', make('one group', folder), CUT / FPS)
    if kind in ('late', 'two', 'resized'):
        suffix = 'mp4' if kind == 'late' else 'mkv'
        return write_tracks(folder / f'{kind}.{suffix}', kind)
    if kind == 'not coded':
        return not_coded(folder / 'not_coded.avi', NOT_CODED)
    if kind == 'hidden frames in VP8':
        return hide(folder / 'hidden.webm', make('VP8', folder))
    if kind == 'without a length':
        return without_length(folder / 'stream.mkv', make('plain', folder))
    name, codec, options = ENCODED[kind]
    return write_video(folder / name, codec, **options)
