# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detection of truncated video files from the sizes in their headers."""
import os
import struct
from typing import BinaryIO

MP4_BOXES = {
    b'ftyp', b'styp', b'moov', b'mdat', b'free', b'skip', b'wide', b'moof',
    b'mfra', b'sidx', b'meta', b'uuid', b'pdin', b'udta'}
# Size in the header of an avi file if the muxer could not seek back to set it.
UNKNOWN = 0xFFFFFFFF
EBML, SEGMENT = b'\x1aE\xdf\xa3', b'\x18S\x80g'


def check_not_cut(path: str) -> None:
    """Check that an mp4 (mov), avi or webm (mkv) file is complete.

    Decoders read a truncated file as a shorter video without an error. Files
    of other formats, and paths that are not local files, pass the check.

    Raises:
        ValueError: If the file is smaller than its headers state.
    """
    if not os.path.isfile(path):
        return
    size = os.path.getsize(path)
    with open(path, 'rb') as file:
        expected = expected_size(file, size)
    if expected > size:
        raise ValueError(f'it is cut off: it has {size} of {expected} bytes')


def expected_size(file: BinaryIO, size: int) -> int:
    """Return the size according to the headers of a file; 0 if unknown.

    ``size`` is the actual size; both are in bytes.
    """
    start = file.read(12)
    if start[:4] == b'RIFF' and start[8:] == b'AVI ':
        length, = struct.unpack('<I', start[4:8])
        return 0 if length == UNKNOWN else length + 8
    if start[:4] == EBML:
        file.seek(4)
        file.seek(_vint(file), os.SEEK_CUR)
        if file.read(4) != SEGMENT:
            return 0
        length = _vint(file)
        return file.tell() + length
    end = last = 0
    while end + 8 <= size:
        file.seek(end)
        length, name = struct.unpack('>I4s', file.read(8))
        if name not in MP4_BOXES:
            # Trailing data, or not an mp4.
            break
        if length == 1:
            length, = struct.unpack('>Q', file.read(8).ljust(8, b'\0'))
        if length < 8:
            # The box reaches to the end of the file, or is damaged.
            break
        if name == b'moov':
            last = _last_chunk(file.read(min(length, size)))
        end += length
    return max(end, last)


def _last_chunk(moov: bytes) -> int:
    """Return the offset of the last chunk in the chunk tables of an mp4."""
    last = 0
    for name, width in ((b'stco', 4), (b'co64', 8)):
        where = moov.find(name, 4)
        while where != -1:
            count = int.from_bytes(moov[where + 8:where + 12], 'big')
            box = int.from_bytes(moov[where - 4:where], 'big')
            # The size must match; otherwise, these bytes only look like a
            # table.
            if box == 16 + width * count:
                table = moov[where + 12:where - 4 + box]
                last = max([last, *(
                    int.from_bytes(table[i:i + width], 'big')
                    for i in range(0, len(table), width))])
            where = moov.find(name, where + 4)
    return last


def _vint(file: BinaryIO) -> int:
    """Read a variable-length number of EBML; 0 if it is marked unknown."""
    first = (file.read(1) or b'\xff')[0]
    length = 9 - first.bit_length()
    rest = file.read(length - 1)
    bits = 7 * length
    number = int.from_bytes(bytes([first]) + rest, 'big') & (1 << bits) - 1
    return 0 if number == (1 << bits) - 1 else number
