# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Containers built from the definitions of their formats."""
import struct

import pytest

from mmvidattn.datasets.broken_files.container_size import check_not_cut


def box(name, body, wide=False):
    """Return a box of an mp4 file; a wide box has a 64-bit size."""
    if wide:
        return struct.pack('>I4sQ', 1, name, len(body) + 16) + body
    return struct.pack('>I4s', len(body) + 8, name) + body


def table(name, offsets):
    width = dict(stco='I', co64='Q')[name]
    return box(name.encode(), struct.pack(
        f'>II{len(offsets)}{width}', 0, len(offsets), *offsets))


def mp4(name='stco', wide=False):
    """Return an mp4 with its index first; the last chunk starts at 400."""
    head = box(b'ftyp', b'isom0000')
    # The name of a table may occur in other data.
    other = b'....stco' + struct.pack('>III', 0, 1, 9999)
    moov = box(b'moov', other + table(name, [200, 400]))
    data = head + moov
    return data + box(b'mdat', bytes(600 - len(data) - 8 - 8 * wide), wide)


def number(value, length):
    """Return a variable-length number of EBML."""
    return (value | 1 << 7 * length).to_bytes(length, 'big')


def mkv(length, unknown=False):
    head = b'\x1aE\xdf\xa3' + number(9, 1) + bytes(9)
    value = (1 << 7 * length) - 1 if unknown else 100
    return head + b'\x18S\x80g' + number(value, length) + bytes(100)


def avi():
    return b'RIFF' + struct.pack('<I', 104) + b'AVI ' + bytes(100)


WHOLE = {
    'mp4': mp4(), 'mp4 of 64 bits': mp4('co64', True),
    'mkv': mkv(1), 'webm of 8 bytes': mkv(8), 'avi': avi()}


@pytest.mark.parametrize('data', WHOLE.values(), ids=WHOLE)
def test_detects_truncation(tmp_path, data):
    path = tmp_path / 'a'
    path.write_bytes(data)
    check_not_cut(str(path))
    path.write_bytes(data + b'trailing data')
    check_not_cut(str(path))
    for size in (len(data) - 1, len(data) - 90):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=(
                f'it has {size} of {len(data)} bytes')):
            check_not_cut(str(path))


@pytest.mark.parametrize('name', ['stco', 'co64'])
def test_detects_lost_frames_by_the_chunk_table(tmp_path, name):
    data = mp4(name)
    path = tmp_path / 'a'
    path.write_bytes(data[:data.index(b'mdat') - 4])
    with pytest.raises(ValueError, match='of 400 bytes$'):
        check_not_cut(str(path))


WITHOUT_SIZE = {
    'avi of unknown size': b'RIFF' + b'\xff' * 4 + b'AVI ' + bytes(90),
    'mkv of unknown size': mkv(8, unknown=True)[:50],
    'mdat to the end': box(b'ftyp', b'isom') + struct.pack(
        '>I4s', 0, b'mdat') + bytes(9),
    'text': b'not a video\n' * 9, 'riff of another kind': b'RIFF' + bytes(99),
    'ebml without a segment': mkv(1)[:14] + bytes(40), 'empty': b''}


@pytest.mark.parametrize('data', WITHOUT_SIZE.values(), ids=WITHOUT_SIZE)
def test_accepts_files_without_a_size(tmp_path, data):
    path = tmp_path / 'a'
    path.write_bytes(data)
    check_not_cut(str(path))


def test_accepts_paths_that_are_not_local_files(tmp_path):
    check_not_cut(str(tmp_path))
    check_not_cut('s3://bucket/a.mp4')
