# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Damaged and unusual video files of many kinds.

``kinds.tsv`` in the folder has a line per file: its name, the number of frames
that a reader must find, and a description. Instead of the number, ``-`` means
that a reader must reject the file, and ``?`` that it may reject the file or
return the requested number of frames.
"""
import os
import random
import shutil
import struct
import tempfile
import wave
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

NUM_FRAMES = 24
REFUSED, EITHER = '-', '?'


def write_video(path: Path, num_frames: int = NUM_FRAMES,
                size: tuple[int, int] = (64, 48), codec: str = 'mp4v') -> Path:
    """Write a square that moves over noise.

    Args:
        path: File; its suffix determines the container.
        num_frames: Number of frames. Defaults to ``NUM_FRAMES``.
        size: Width and height. Defaults to (64, 48).
        codec: Four-letter code of the codec. Defaults to 'mp4v'.
    """
    width, height = size
    noise = np.random.default_rng(0).integers(
        0, 256, (height, width, 3), np.uint8)
    writer = cv2.VideoWriter(
        str(path), cv2.VideoWriter_fourcc(*codec), 10, size)
    for i in range(num_frames):
        frame = noise.copy()
        frame[height // 4:height // 2, i * width // num_frames:][:, :8] = 255
        writer.write(frame)
    writer.release()
    return path


def find_box(data: bytes, *names: str) -> tuple[int, int]:
    """Return the start and end of the contents of a box in an mp4 file.

    Args:
        data: Contents of the file.
        names: Names of the nested boxes, from the outermost.
    """
    start, end = 0, len(data)
    for name in names:
        while start + 8 <= end:
            size, kind = struct.unpack('>I4s', data[start:start + 8])
            if kind == name.encode():
                start, end = start + 8, start + size
                break
            if size < 8:
                raise ValueError(f'no box {name}')
            start += size
        else:
            raise ValueError(f'no box {name}')
    return start, end


TRACK = 'moov', 'trak'
TABLE = *TRACK, 'mdia', 'minf', 'stbl'


def change(data: bytes, place: tuple[int, int], new: bytes) -> bytes:
    """Overwrite bytes, beginning at the start of a place."""
    return data[:place[0]] + new + data[place[0] + len(new):]


def moov_first(data: bytes) -> bytes:
    """Move the index of a video before its frames."""
    start, end = find_box(data, 'moov')
    moov, size = data[start - 8:end], end - start + 8
    first, last = find_box(moov, 'moov', *TABLE[1:], 'stco')
    count, = struct.unpack('>I', moov[first + 4:first + 8])
    offsets = struct.unpack_from(f'>{count}I', moov, first + 8)
    moov = change(moov, (first + 8, last), struct.pack(
        f'>{count}I', *(offset + size for offset in offsets)))
    head = find_box(data, 'ftyp')[1]
    return data[:head] + moov + data[head:start - 8] + data[end:]


def flip_bits(data: bytes, place: tuple[int, int], number: int) -> bytes:
    changed, rng = bytearray(data), random.Random(0)
    for _ in range(number):
        changed[rng.randrange(*place)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def audio_track_only(data: bytes) -> bytes:
    start, _ = find_box(data, *TRACK, 'mdia', 'hdlr')
    return change(data, (start + 8, start + 12), b'soun')


def too_many_frames(data: bytes) -> bytes:
    """Double the number of frames in the index."""
    start, _ = find_box(data, *TABLE, 'stts')
    count, = struct.unpack('>I', data[start + 8:start + 12])
    return change(data, (start + 8, start + 12),
                  struct.pack('>I', 2 * count))


def offsets_beyond_end(data: bytes) -> bytes:
    start, _ = find_box(data, *TABLE, 'stco')
    count, = struct.unpack('>I', data[start + 4:start + 8])
    return change(data, (start + 8, start + 12),
                  struct.pack('>I', 2**31) * count)


def sound(path: Path) -> None:
    with wave.open(str(path), 'wb') as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000))


def write_corpus(folder: Path) -> list[tuple[str, str, str]]:
    """Write the files, and return names, expected frames and descriptions."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        mp4 = write_video(Path(scratch, 'a.mp4')).read_bytes()
        avi = write_video(Path(scratch, 'a.avi'), codec='MJPG').read_bytes()
        long_mp4 = write_video(
            Path(scratch, 'b.mp4'), 200, (320, 240)).read_bytes()
    half = len(mp4) // 2
    frames, first = find_box(mp4, 'mdat'), moov_first(mp4)
    long_first = moov_first(long_mp4)
    rng = np.random.default_rng(0)

    # Name: (expected frames, description, contents or function to write them).
    n = str(NUM_FRAMES)
    kinds: dict[str, tuple[str, str, bytes | Callable[[Path], object]]] = {
        'good.mp4': (n, 'valid', mp4),
        'good.avi': (n, 'valid', avi),
        'two words and ü.mp4': (n, 'blanks and Unicode in the name', mp4),
        'moov_first.mp4': (n, 'index before the frames', first),
        'one_frame.mp4': ('1', 'one frame', lambda p: write_video(p, 1)),
        'mp4_named.avi': (n, 'an mp4 with a wrong suffix', mp4),
        'linked.mp4': (n, 'a link to a valid file', lambda p: p.symlink_to(
            'good.mp4')),
        'flipped_frames.mp4': (EITHER, '8 bits of the frames flipped',
                               flip_bits(mp4, frames, 8)),
        'cut.avi': (EITHER, 'an avi cut in a frame',
                    avi[:len(avi) // 2]),
        'cut_moov_first.mp4': (EITHER, 'index and half of the data',
                               first[:len(first) - half]),
        'cut_long.mp4': (EITHER, 'index and a third of the data',
                         long_first[:len(long_first) // 3]),
        'noise.mp4': (EITHER, 'noise instead of frames', change(
            mp4, frames, rng.bytes(frames[1] - frames[0]))),
        'zero_frames.mp4': (EITHER, 'zeros instead of frames', change(
            mp4, frames, bytes(frames[1] - frames[0]))),
        'too_many.mp4': (EITHER, 'index with twice the frames',
                         too_many_frames(mp4)),
        'beyond_end.mp4': (REFUSED, 'frames beyond the end of the file',
                           offsets_beyond_end(mp4)),
        'empty.mp4': (REFUSED, 'no bytes', b''),
        'text.mp4': (REFUSED, 'text', b'not a video\n' * 99),
        'cut.mp4': (REFUSED, 'without its second half', mp4[:half]),
        'cut_start.mp4': (REFUSED, 'without its first half', mp4[half:]),
        'header_only.mp4': (REFUSED, 'the first 32 bytes', mp4[:32]),
        'no_frames.mp4': (REFUSED, 'no frames',
                          lambda p: write_video(p, 0)),
        'sound.mp4': (REFUSED, 'sound with a wrong suffix', sound),
        'audio_track.mp4': (REFUSED, 'a video track marked as sound',
                            audio_track_only(mp4)),
        'folder.mp4': (REFUSED, 'a folder', lambda p: p.mkdir()),
        'pipe.mp4': (REFUSED, 'a pipe without a writer',
                     lambda p: os.mkfifo(p)),
        'endless.mp4': (REFUSED, 'a link to endless zeros',
                        lambda p: p.symlink_to('/dev/zero')),
        'loop_a.mp4': (REFUSED, 'a loop of links',
                       lambda p: p.symlink_to('loop_b.mp4')),
        'loop_b.mp4': (REFUSED, 'a loop of links',
                       lambda p: p.symlink_to('loop_a.mp4')),
        'dangling.mp4': (REFUSED, 'a link to nothing',
                         lambda p: p.symlink_to('nothing.mp4')),
        'locked.mp4': (REFUSED, 'no permission to read it', mp4),
    }
    for name, (_, _, contents) in kinds.items():
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if isinstance(contents, bytes):
            path.write_bytes(contents)
        else:
            contents(path)
    (folder / 'locked.mp4').chmod(0)
    rows = [(name, expected, what)
            for name, (expected, what, _) in kinds.items()]
    if os.access(folder / 'locked.mp4', os.R_OK):
        # The superuser can read it.
        rows = [(name, n if name == 'locked.mp4' else expected, what)
                for name, expected, what in rows]
    (folder / 'kinds.tsv').write_text(
        ''.join('\t'.join(row) + '\n' for row in rows), 'utf-8')
    return rows
