# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import resource
from contextlib import contextmanager

import av
import cv2
import numpy as np
import pytest

from mmvidattn.visualization import VideoWriter
from mmvidattn.visualization.mp4 import Mp4File


@pytest.fixture(params=['h264', 'FMP4'])
def codec(request, monkeypatch):
    """Return the expected FourCC of a file."""
    if request.param == 'FMP4':
        monkeypatch.setattr(av, 'codecs_available', {'mpeg4'})
    elif not {'libx264', 'libopenh264'} & av.codecs_available:
        pytest.skip('PyAV lacks an H.264 encoder')
    return request.param


@pytest.mark.parametrize('fps, side', [(12, 64), (30000 / 1001, 65),
                                       (123.4567, 64)])
def test_file_has_the_written_frames(codec, tmp_path, capsys, fps, side):
    path = tmp_path / 'video.mp4'
    file = Mp4File(path, fps, (2 * side, side))
    for i in range(9):
        image = np.full((side, 2 * side, 3), (25 * i, 60, 200), np.uint8)
        # Pass a view that is not contiguous.
        file.write(image[::-1])
    file.close()
    assert ('browsers may not play it' in capsys.readouterr().err) == (
        codec == 'FMP4')
    video, result = cv2.VideoCapture(str(path)), []
    assert int(video.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, 'little') == (
        codec.encode())
    assert video.get(cv2.CAP_PROP_FPS) == pytest.approx(fps, rel=1e-3)
    while (read := video.read())[0]:
        result.append(read[1].mean((0, 1))[::-1])
    np.testing.assert_allclose(
        result, [(25 * i, 60, 200) for i in range(9)], atol=6)
    assert read[1] is None and video.get(cv2.CAP_PROP_FRAME_WIDTH) == (
        2 * side)
    data = path.read_bytes()
    # The index comes first.
    assert 0 < data.index(b'moov') < data.index(b'mdat')


@contextmanager
def largest_file(num_bytes):
    """Limit the size of this process's files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_noise(path):
    """Write frames that exceed the encoder's buffer."""
    rng = np.random.default_rng(0)
    with VideoWriter(path, 12) as video:
        for _ in range(12):
            video.write(rng.integers(0, 255, (64, 480, 3), np.uint8), ['x'])


def num_frames(path):
    """Count the frames of a video that can be decoded."""
    video, number = cv2.VideoCapture(str(path)), 0
    while video.read()[0]:
        number += 1
    return number


def open_handles():
    return sorted(os.readlink(f'/proc/self/fd/{name}')
                  for name in os.listdir('/proc/self/fd')
                  if os.path.exists(f'/proc/self/fd/{name}'))


@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'),
                    reason='counts open files in /proc')
def test_full_disk_leaves_neither_file_nor_handle(codec, tmp_path):
    path = tmp_path / 'video.mp4'
    with pytest.raises(OSError):
        Mp4File(tmp_path / 'none/video.mp4', 12, (64, 64))
    write_noise(path)
    total, before = path.stat().st_size, open_handles()
    path.unlink()
    # Fail in the header, in the frames, in the index and at the last byte.
    for size in 0, 40, 20_000, total - 400, total - 1:
        try:
            with largest_file(size):
                write_noise(path)
        except OSError:
            assert not path.exists(), size
        else:
            # The size of the same video may differ by a few bytes.
            assert size > total - 500
            assert path.stat().st_size < size and num_frames(path) == 12
            path.unlink()
        assert open_handles() == before, size
    write_noise(path)
    assert num_frames(path) == 12
