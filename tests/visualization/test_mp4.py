# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import sys

import cv2
import numpy as np
import pytest

from mmvidattn.visualization.mp4 import (
    H264File,
    Mpeg4File,
    can_encode_h264,
    open_mp4,
)


@pytest.fixture(params=['pyav', 'opencv'])
def codec(request, monkeypatch):
    """What a file's four letters must be."""
    if request.param == 'opencv':
        monkeypatch.setitem(sys.modules, 'av', None)
        return 'FMP4'
    pytest.importorskip('av')
    if not can_encode_h264():
        pytest.skip('this PyAV has no encoder of H.264')
    return 'h264'


@pytest.mark.parametrize('fps, side', [(12, 64), (30000 / 1001, 65)])
def test_frames_are_those_that_were_written(codec, tmp_path, fps, side):
    path = tmp_path / 'video.mp4'
    file = open_mp4(path, fps, (2 * side, side))
    for i in range(9):
        image = np.full((side, 2 * side, 3), (25 * i, 60, 200), np.uint8)
        # As a view, that is not contiguous.
        file.write(image[::-1])
    file.close()
    video, found = cv2.VideoCapture(str(path)), []
    assert int(video.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, 'little') == (
        codec.encode())
    assert video.get(cv2.CAP_PROP_FPS) == pytest.approx(fps, rel=1e-3)
    while (read := video.read())[0]:
        found.append(read[1].mean((0, 1))[::-1])
    np.testing.assert_allclose(
        found, [(25 * i, 60, 200) for i in range(9)], atol=6)
    assert read[1] is None and video.get(cv2.CAP_PROP_FRAME_WIDTH) == (
        2 * side)
    if codec == 'h264':
        data = path.read_bytes()
        # The index first.
        assert 0 < data.index(b'moov') < data.index(b'mdat')


def test_where_nothing_can_be_written(codec, tmp_path):
    with pytest.raises(OSError):
        open_mp4(tmp_path / 'none/video.mp4', 12, (64, 64))


def test_which_it_is(codec, tmp_path):
    file = open_mp4(tmp_path / 'video.mp4', 12, (64, 64))
    assert type(file) is {'h264': H264File, 'FMP4': Mpeg4File}[codec]
    file.write(np.zeros((64, 64, 3), np.uint8))
    file.close()
