# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos of several kinds, each frame of which tells its number."""
import struct
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers import slow_down

from mmvidattn.utils.video_readers import why_no_backend

WIDTH, HEIGHT, LENGTH, FPS = 96, 64, 40, 20
BITS = 6


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


def write_video(path: Path, codec: str, **options: str) -> Path:
    """A file of any kind that PyAV's ffmpeg can write."""
    av = pytest.importorskip('av', reason='PyAV is not installed')
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg has no {codec} here')
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(codec, rate=FPS)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = options.pop('pix_fmt', 'yuv420p')
        stream.options = options
        for image in images():
            container.mux(stream.encode(
                av.VideoFrame.from_ndarray(image, format='rgb24')))
        container.mux(stream.encode())
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
