# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos of several kinds, each frame of which tells its number."""
import struct
from collections.abc import Container
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from helpers import slow_down

from mmvidattn.utils.video_readers import why_no_backend

WIDTH, HEIGHT, LENGTH, FPS = 96, 64, 40, 20
BITS = 6
# The first frame of a video that was cut.
CUT = 17


def require_backend(name: str) -> None:
    """Skip a test where this backend cannot be used."""
    why = why_no_backend(name)
    if why:
        pytest.skip(why)


def images() -> list[np.ndarray]:
    """A bright block that moves, over the number of the frame in blocks."""
    found = []
    for number in range(LENGTH):
        image = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
        for bit in range(BITS):
            image[:16, 16 * bit:16 * bit + 16] = \
                220 if number >> bit & 1 else 30
        image[30:50, 2 * number:2 * number + 14] = 40, 120, 200
        found.append(image)
    return found


def numbers_of(frames: np.ndarray) -> list[int]:
    """The numbers that frames [T, H, W, 3] tell."""
    blocks = np.stack([frames[:, 4:12, 16 * bit + 4:16 * bit + 12].mean(
        (1, 2, 3)) for bit in range(BITS)], 1)
    return ((blocks > 125) @ (1 << np.arange(BITS))).tolist()


def write_opencv(path: Path) -> Path:
    """An mp4 of MPEG-4 without B-frames, as OpenCV writes it."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), FPS,
                             (WIDTH, HEIGHT))
    for image in images():
        writer.write(image[..., ::-1])
    writer.release()
    return path


def write_video(path: Path, codec: str, lost: Container[int] = (),
                **options: str) -> Path:
    """A file of any kind that PyAV's ffmpeg can write, but for the packets
    with the numbers ``lost``."""
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg has no {codec} here')
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(codec, rate=FPS)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = options.pop('pix_fmt', 'yuv420p')
        stream.options = options
        frames = [av.VideoFrame.from_ndarray(image, format='rgb24')
                  for image in images()]
        packets = [packet for frame in [*frames, None]
                   for packet in stream.encode(frame)]
        container.mux([packet for number, packet in enumerate(packets)
                       if number not in lost])
    return path


def cut(path: Path, source: Path, seconds: float) -> Path:
    """Copy the frames of an mp4 from a time on, without re-encoding: an edit
    list hides those between the key frame and that time."""
    with av.open(str(source)) as old, av.open(str(path), 'w') as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        old.seek(int(seconds * av.time_base))
        for packet in old.demux(video=0):
            if packet.size:
                begin = round(seconds / packet.time_base)
                packet.pts, packet.dts = packet.pts - begin, packet.dts - begin
                packet.stream = stream
                new.mux(packet)
    return path


def turn(path: Path) -> Path:
    """Let an mp4 say that it is to be turned by 90 degrees."""
    data = bytearray(path.read_bytes())
    at = data.index(b'tkhd') + 44
    one = 1 << 16
    data[at:at + 36] = struct.pack(
        '>9i', 0, one, 0, -one, 0, 0, HEIGHT * one, 0, 1 << 30)
    path.write_bytes(data)
    return path


def make(kind: str, folder: Path) -> Path:
    """A video by what is special about it."""
    if kind == 'plain':
        return write_opencv(folder / 'plain.mp4')
    if kind == 'varying rate':
        path = write_opencv(folder / 'varying.mp4')
        slow_down(path, 20, 4)
        return path
    if kind == 'turned':
        return turn(write_opencv(folder / 'turned.mp4'))
    if kind == 'B-frames':
        return write_video(folder / 'b.mp4', 'libx264', bf='3', g='12')
    if kind == 'interlaced':
        return write_video(folder / 'interlaced.mp4', 'libx264', g='12',
                           flags='+ilme+ildct', **{'x264-params': 'tff=1'})
    if kind == 'interlaced MPEG-2':
        return write_video(folder / 'mpeg2.mkv', 'mpeg2video', g='12',
                           flags='+ilme+ildct', b='4M')
    if kind == 'cut':
        return cut(folder / 'cut.mp4', make('B-frames', folder), CUT / FPS)
    if kind == 'cut in its first group':
        return cut(folder / 'first.mp4', write_video(
            folder / 'one.mp4', 'libx264', bf='3', g='99'), CUT / FPS)
    if kind == 'no key frame first':
        return write_video(folder / 'late.mp4', 'libx264', g='12', bf='0',
                           lost=range(5))
    if kind == 'intra refresh':
        return write_video(folder / 'refresh.mp4', 'libx264', g='12',
                           **{'x264-params': 'intra-refresh=1'})
    if kind == 'one group in avi':
        return write_video(folder / 'one.avi', 'mpeg4', bf='2', g='99')
    if kind == 'open groups':
        return write_video(folder / 'open.mkv', 'libx264', bf='3', g='12',
                           **{'x264-params': 'open-gop=1'})
    if kind == 'HEVC':
        return write_video(folder / 'hevc.mp4', 'libx265', g='12',
                           **{'x265-params': 'log-level=none'})
    if kind == 'mjpeg avi':
        return write_video(folder / 'jpeg.avi', 'mjpeg', pix_fmt='yuvj420p')
    if kind == 'B-frames in avi':
        return write_video(folder / 'b.avi', 'mpeg4', bf='2', g='12')
    if kind == 'transport stream':
        return write_video(folder / 'b.ts', 'libx264', bf='2', g='12')
    raise ValueError(kind)
