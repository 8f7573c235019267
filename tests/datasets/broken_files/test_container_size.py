# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Containers built by hand, as their formats are defined."""
import struct

import pytest

from mmvidattn.datasets.broken_files.container_size import check_not_cut


def box(name, body, wide=False):
    """A box of an mp4 file; a wide one has its size in 64 bits."""
    if wide:
        return struct.pack('>I4sQ', 1, name, len(body) + 16) + body
    return struct.pack('>I4s', len(body) + 8, name) + body


def table(name, offsets):
    width = dict(stco='I', co64='Q')[name]
    return box(name.encode(), struct.pack(
        f'>II{len(offsets)}{width}', 0, len(offsets), *offsets))


def mp4(name='stco', wide=False):
    """The index ahead of the frames, of which the last starts at 400."""
    head = box(b'ftyp', b'isom0000')
    # The name of a table may be among other bytes.
    other = b'....stco' + struct.pack('>III', 0, 1, 9999)
    moov = box(b'moov', other + table(name, [200, 400]))
    data = head + moov
    return data + box(b'mdat', bytes(600 - len(data) - 8 - 8 * wide), wide)


def number(value, length):
    """A number of EBML."""
    return (value | 1 << 7 * length).to_bytes(length, 'big')


def mkv(length, unknown=False):
    head = b'\x1aE\xdf\xa3' + number(9, 1) + bytes(9)
    value = (1 << 7 * length) - 1 if unknown else 100
    return head + b'\x18S\x80g' + number(value, length) + bytes(100)


def avi():
    return b'RIFF' + struct.pack('<I', 104) + b'AVI ' + bytes(100)


WHOLE = {
    'mp4': mp4(), 'mp4 of 64 bits': mp4('co64', True),
    'mkv': mkv(1), 'webm of 8 bytes': mkv(8), 'avi': avi()
}


@pytest.mark.parametrize('data', WHOLE.values(), ids=WHOLE)
def test_a_cut_is_seen(tmp_path, data):
    path = tmp_path / 'a'
    path.write_bytes(data)
    check_not_cut(str(path))
    path.write_bytes(data + b'what follows')
    check_not_cut(str(path))
    for size in (len(data) - 1, len(data) - 90):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=(
                f'it has {size} bytes of {len(data)}')):
            check_not_cut(str(path))


@pytest.mark.parametrize('name', ['stco', 'co64'])
def test_frames_that_are_gone_with_their_box_are_missed(tmp_path, name):
    data = mp4(name)
    path = tmp_path / 'a'
    path.write_bytes(data[:data.index(b'mdat') - 4])
    with pytest.raises(ValueError, match='bytes of 400$'):
        check_not_cut(str(path))


OTHERS = {
    'avi that does not say': b'RIFF' + b'\xff' * 4 + b'AVI ' + bytes(90),
    'mkv that does not say': mkv(8, unknown=True)[:50],
    'mdat to the end': box(b'ftyp', b'isom') + struct.pack(
        '>I4s', 0, b'mdat') + bytes(9),
    'text': b'not a video\n' * 9, 'riff of another kind': b'RIFF' + bytes(99),
    'ebml without a segment': mkv(1)[:14] + bytes(40), 'empty': b''
}


@pytest.mark.parametrize('data', OTHERS.values(), ids=OTHERS)
def test_what_says_nothing_of_its_size_passes(tmp_path, data):
    path = tmp_path / 'a'
    path.write_bytes(data)
    check_not_cut(str(path))


def test_what_is_no_local_file_passes(tmp_path):
    check_not_cut(str(tmp_path))
    check_not_cut('s3://bucket/a.mp4')
