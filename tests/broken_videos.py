# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Damaged and unusual video files of many kinds."""
import os
import random
import struct
import tempfile
import wave
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from made_videos import images, remux, write_opencv

READ, REFUSED, EITHER = 'read', 'refused', 'either'


def box(data: bytes, name: bytes) -> int:
    """Return where the contents of a box of an mp4 file start."""
    return data.index(name) + 4


def change(data: bytes, start: int, new: bytes) -> bytes:
    """Overwrite bytes from a place on."""
    return data[:start] + new + data[start + len(new):]


def flip_bits(data: bytes, start: int, end: int, number: int) -> bytes:
    for at in random.Random(0).sample(range(start, end), number):
        data = change(data, at, bytes([data[at] ^ 1 << at % 8]))
    return data


def too_many_frames(data: bytes) -> bytes:
    """Double the number of frames in the index."""
    start = box(data, b'stts') + 8
    count, = struct.unpack_from('>I', data, start)
    return change(data, start, struct.pack('>I', 2 * count))


def offsets_beyond_end(data: bytes) -> bytes:
    start = box(data, b'stco') + 4
    count, = struct.unpack_from('>I', data, start)
    return change(data, start + 4, struct.pack('>I', 2**31) * count)


def sound(path: Path) -> None:
    with wave.open(str(path), 'wb') as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000))


def write_long(path: Path) -> Path:
    """Write 200 large frames."""
    return write_opencv(path, [
        cv2.resize(image, (320, 240)) for image in images()] * 5)


def index_first(path: Path) -> bytes:
    """Return a video with its index before its frames."""
    return remux(path.with_suffix('.first.mp4'), path, lambda x: [x],
                 options=dict(movflags='faststart')).read_bytes()


def write_corpus(folder: Path) -> dict[str, str]:
    """Write the files.

    Returns:
        By the name of each file, ``READ``, ``REFUSED``, or ``EITHER`` if a
        reader may reject it or return the requested number of frames.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = write_opencv(Path(scratch, 'a.mp4'))
        mp4, first = path.read_bytes(), index_first(path)
        avi = write_opencv(Path(scratch, 'a.avi'), codec='MJPG').read_bytes()
        long_first = index_first(write_long(Path(scratch, 'b.mp4')))
    half = len(mp4) // 2
    frames = box(mp4, b'mdat')
    length = struct.unpack_from('>I', mp4, frames - 8)[0] - 8
    noise = np.random.default_rng(0).bytes(length)

    # Contents or function to write them.
    kinds: dict[str, tuple[str, bytes | Callable[[Path], object]]] = {
        'good.mp4': (READ, mp4),
        'good.avi': (READ, avi),
        'two words and ü.mp4': (READ, mp4),
        'index_first.mp4': (READ, first),
        'one_frame.mp4': (READ, lambda p: write_opencv(p, images()[:1])),
        'mp4_named.avi': (READ, mp4),
        'linked.mp4': (READ, lambda p: p.symlink_to('good.mp4')),
        'flipped_frames.mp4': (
            EITHER, flip_bits(mp4, frames, frames + length, 8)),
        'cut.avi': (EITHER, avi[:len(avi) // 2]),
        'cut_index_first.mp4': (EITHER, first[:len(first) - half]),
        'cut_long.mp4': (EITHER, long_first[:len(long_first) // 3]),
        'noise.mp4': (EITHER, change(mp4, frames, noise)),
        'zero_frames.mp4': (EITHER, change(mp4, frames, bytes(length))),
        'too_many.mp4': (EITHER, too_many_frames(mp4)),
        'beyond_end.mp4': (REFUSED, offsets_beyond_end(mp4)),
        'empty.mp4': (REFUSED, b''),
        'text.mp4': (REFUSED, b'not a video\n' * 99),
        'cut.mp4': (REFUSED, mp4[:half]),
        'cut_start.mp4': (REFUSED, mp4[half:]),
        'header_only.mp4': (REFUSED, mp4[:32]),
        'no_frames.mp4': (REFUSED, lambda p: write_opencv(p, [])),
        'sound.mp4': (REFUSED, sound),
        'video_marked_as_sound.mp4': (
            REFUSED, change(mp4, box(mp4, b'hdlr') + 8, b'soun')),
        'folder.mp4': (REFUSED, Path.mkdir),
        'pipe_without_a_writer.mp4': (REFUSED, os.mkfifo),
        'endless.mp4': (REFUSED, lambda p: p.symlink_to('/dev/zero')),
        'loop_a.mp4': (REFUSED, lambda p: p.symlink_to('loop_b.mp4')),
        'loop_b.mp4': (REFUSED, lambda p: p.symlink_to('loop_a.mp4')),
        'dangling.mp4': (REFUSED, lambda p: p.symlink_to('nothing.mp4')),
        'locked.mp4': (REFUSED, mp4),
    }
    for name, (_, contents) in kinds.items():
        if isinstance(contents, bytes):
            (folder / name).write_bytes(contents)
        else:
            contents(folder / name)
    results = {name: result for name, (result, _) in kinds.items()}
    (folder / 'locked.mp4').chmod(0)
    if os.access(folder / 'locked.mp4', os.R_OK):
        # The superuser can read it.
        results['locked.mp4'] = READ
    return results
