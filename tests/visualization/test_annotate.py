# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os

import av
import cv2
import decord
import numpy as np
import pytest
from helpers import small_disk
from live_fixtures import write_clip
from made_videos import slow_down

from mmvidattn.visualization import VideoWriter, annotate_video, write_sheet

LINES = ['0.9 walk the dog', '0.1 run']


def frames_of(num, height, width):
    """Return frames with increasing red."""
    frames = np.zeros((num, height, width, 3), np.uint8)
    frames[..., 0] = np.linspace(50, 250, num)[:, None, None]
    return frames


def read(path):
    """Return all frames of a video, BGR."""
    capture, frames = cv2.VideoCapture(str(path)), []
    while (found := capture.read())[0]:
        frames.append(found[1])
    return frames


@pytest.mark.parametrize('num, tiles', [(1, 1), (3, 3), (6, 8), (30, 8)])
def test_sheet_has_frames_in_order(tmp_path, num, tiles):
    write_sheet(tmp_path / 'new/x.png', frames_of(num, 96, 192), LINES)
    image = cv2.imread(str(tmp_path / 'new/x.png'))
    columns, rows = min(tiles, 4), -(-tiles // 4)
    assert image.shape[1] == columns * 196
    sheet = image[len(image) - rows * 100:]
    red = [int(sheet[100 * r + 50, 196 * c + 90, 2]) for r in range(rows)
           for c in range(columns)]
    shown = red[:min(num, 8)]
    assert shown[0] == 50 and shown == sorted(shown)
    assert num == 1 or shown[-1] == 250
    # Empty tiles are black.
    assert set(red[num:]) <= {0}
    assert image[:len(image) - rows * 100].max() > 200


def test_caption_fits_long_lines(tmp_path):
    write_sheet(tmp_path / 'x.png', frames_of(4, 20, 20), ['W' * 200])
    caption = cv2.imread(str(tmp_path / 'x.png'))[:32]
    assert caption.max() > 100
    assert (caption[:, -8:] == 24).all()


@pytest.fixture(params=['h264', 'FMP4'])
def codec(request, monkeypatch):
    """Return the expected FourCC of a file."""
    if request.param == 'FMP4':
        monkeypatch.setattr(av, 'codecs_available', {'mpeg4'})
    elif not {'libx264', 'libopenh264'} & av.codecs_available:
        pytest.skip('PyAV lacks an H.264 encoder')
    return request.param


@pytest.mark.parametrize('fps, height, width', [
    (12, 41, 33), (30000 / 1001, 30, 801), (123.4567, 64, 480)])
def test_video_has_the_written_frames(codec, tmp_path, capsys, fps, height,
                                      width):
    path, frames = tmp_path / 'new/out.mp4', frames_of(10, height, width)
    frames[:, height // 2:, :, 2] = 200
    writer = VideoWriter(path, fps)
    for t, frame in enumerate(frames):
        # The frame size of a source may change.
        writer.write(frame if t < 5 else frame[:, :width // 2], LINES)
    writer.close()
    assert ('browsers may not play it' in capsys.readouterr().err) == (
        codec == 'FMP4')
    data = path.read_bytes()
    # The index comes first.
    assert 0 < data.index(b'moov') < data.index(b'mdat')
    video = cv2.VideoCapture(str(path))
    assert int(video.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, 'little') == (
        codec.encode())
    assert video.get(cv2.CAP_PROP_FPS) == pytest.approx(fps, rel=1e-3)
    result = np.array(read(path))
    # Sides are even, and smaller frames are enlarged to the width of captions.
    assert len(result) == 10
    assert result.shape[2] == max(480, width // 2 * 2)
    middle = result[:, -5, result.shape[2] // 2].astype(int)
    assert np.abs(middle[:, 2] - frames[:, 0, 0, 0]).max() < 12
    # The lower half of a frame is below its upper half at any size.
    assert np.abs(middle[:, 0] - 200).max() < 12
    assert result[0, :50].max() > 150
    VideoWriter(tmp_path / 'none.mp4', 12).close()
    assert not (tmp_path / 'none.mp4').exists()


def test_video_of_varying_rate_keeps_duration(tmp_path):
    video = write_clip(tmp_path / 'uneven.mp4', 24)
    slow_down(video, 12, 4)
    annotate_video(video, tmp_path / 'out.mp4', LINES)
    reader = decord.VideoReader(str(tmp_path / 'out.mp4'), num_threads=1)
    assert reader.get_avg_fps() == pytest.approx(12, rel=1e-3)
    assert len(reader) / 12 == pytest.approx(5, abs=0.3)


def test_suffix_selects_video_or_image(tmp_path):
    video = write_clip(tmp_path / 'clip.mp4', 6)
    for name, number in ('x.mp4', 6), ('x.png', 1):
        annotate_video(video, tmp_path / 'new' / name, LINES)
        assert len(read(tmp_path / 'new' / name)) == number
    with pytest.raises(ValueError, match='x.gif must end with one of .mp4'):
        annotate_video(video, tmp_path / 'x.gif', LINES)


def write_noise(path):
    """Write frames that exceed the encoder's buffer."""
    rng = np.random.default_rng(0)
    with VideoWriter(path, 12) as video:
        for _ in range(12):
            video.write(rng.integers(0, 255, (64, 480, 3), np.uint8), ['x'])


def open_handles():
    return sorted(os.readlink(f'/proc/self/fd/{name}')
                  for name in os.listdir('/proc/self/fd')
                  if os.path.exists(f'/proc/self/fd/{name}'))


@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'),
                    reason='counts open files in /proc')
def test_full_disk_leaves_neither_file_nor_handle(codec, tmp_path):
    path = tmp_path / 'video.mp4'
    write_noise(path)
    total, before = path.stat().st_size, open_handles()
    path.unlink()
    # Fail in the header, in the frames, in the index and at the last byte.
    for size in 0, 40, 20_000, total - 400, total - 1:
        try:
            with small_disk(size):
                write_noise(path)
        except OSError:
            assert not path.exists(), size
        else:
            # The size of the same video may differ by a few bytes.
            assert size > total - 500
            assert path.stat().st_size < size and len(read(path)) == 12
            path.unlink()
        assert open_handles() == before, size
    write_noise(path)
    assert len(read(path)) == 12
