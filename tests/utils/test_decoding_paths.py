# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare each way to decode a video with the ffmpeg program."""
import re
import shutil
from functools import partial

import numpy as np
import pytest
from helpers import ROOT
from made_videos import require_backend
from rtsp_server import RtspServer
from video_kinds import KINDS, ffmpeg_frames, make_kind

from mmvidattn.live import open_source
from mmvidattn.sources import LiveSource
from mmvidattn.utils.decord_check import open_decord
from mmvidattn.utils.video_reader import VideoReader

READERS = 'decord', 'pyav'
PATHS = *READERS, 'live file', 'RTSP'
# Paths with a column in the page; the others are right for all files.
COLUMNS = 'decord', 'RTSP'
# Mean difference of a frame, of 255; color conversions differ a little.
TOLERANCE = 2.
# Number of last frames that a source on the web may miss.
SLACK = 3
# Start of the names of kinds that live sources resample to a constant rate.
RESAMPLED = ('varying', 'picture later', 'two frames', 'an hour',
             'packets without', 'cut off', 'without its')
TABLE = re.compile(r'\| file \| ' + r' \| '.join(COLUMNS) + r' \|\n\|[-|]+\|\n'
                   r'((?:\|.*\n)+)')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which('ffmpeg'),
                       reason='there is no ffmpeg program')]


def documented():
    """Return the table of docs/decoding.md, by kind of file and path."""
    result = TABLE.search((ROOT / 'docs/decoding.md').read_text())
    rows = [[cell.strip() for cell in line.strip('|\n').split('|')]
            for line in result[1].splitlines()]
    return {row[0]: {**dict.fromkeys(PATHS, 'right'),
                     **dict(zip(COLUMNS, row[1:]))} for row in rows}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('kinds')


def test_docs_cover_all_kinds():
    assert documented().keys() == KINDS.keys()


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('kind', KINDS)
def test_frames_equal_ffmpeg_or_file_is_refused(folder, kind, path):
    if documented()[kind][path] == '-':
        pytest.skip('RTSP is not compared')
    file = make_kind(kind, folder)
    expected = ffmpeg_frames(file, path == 'RTSP').astype(np.int16)
    if path in READERS:
        require_backend(path)
        result = read_back_and_forth(file, path, expected)
    elif path == 'RTSP':
        result = watch(partial(play_rtsp, file), expected)
    else:
        result = watch(partial(open_source, file), expected,
                       kind.startswith(RESAMPLED))
    assert result == documented()[kind][path]


def read_back_and_forth(file, name, expected):
    """Read all frames in order, at random, and in one batch."""
    order = np.random.default_rng(0).permutation(len(expected))
    batch = [len(expected) - 1, len(expected) // 2, 3, len(expected) // 3]
    opens = VideoReader if name == 'pyav' else open_decord
    try:
        reader = opens(str(file))
        if len(reader) != len(expected):
            return f'{len(reader)} frames for {len(expected)}'
        read = [(number, array_of(reader[int(number)]))
                for number in [*range(len(reader)), *order]]
        read += zip(batch, array_of(opens(str(file)).get_batch(batch)))
    except Exception:
        return 'refused'
    for number, image in read:
        assert image.shape == expected[number].shape
        assert np.abs(expected[number] - image).mean() <= TOLERANCE
    return 'right'


def array_of(image):
    return image if isinstance(image, np.ndarray) else image.asnumpy()


def watch(source, expected, is_resampled=False):
    """Read a live source to its end."""
    numbers = []
    try:
        for frame in source():
            assert frame.image.shape == expected.shape[1:]
            errors = np.abs(expected - frame.image).mean((1, 2, 3))
            assert errors.min() <= TOLERANCE
            numbers.append(int(errors.argmin()))
    except ValueError:
        return 'refused'
    assert numbers == sorted(numbers)
    assert is_resampled or numbers == [*range(len(numbers))]
    assert numbers[0] == 0 and numbers[-1] >= len(expected) - 1 - SLACK
    return 'right'


def play_rtsp(file):
    with RtspServer(file) as server:
        source = LiveSource(server.url, patience=0.1)
        # Without the server, the source cannot reconnect.
        server.shutdown()
        server.server_close()
        with pytest.raises(ValueError, match='was lost'):
            yield from source
