# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import decord
import numpy as np
import pytest
from helpers import slow_down
from live_fixtures import write_clip

from mmvidattn.visualization import VideoWriter, annotate_video, write_sheet

LINES = ['0.9 walk the dog', '0.1 run']


def frames_of(num, height, width):
    """Return frames with increasing red."""
    frames = np.zeros((num, height, width, 3), np.uint8)
    frames[..., 0] = np.linspace(50, 250, num)[:, None, None]
    return frames


@pytest.fixture
def video(tmp_path):
    """Write a video with small frames, whose height is not a multiple of 4."""
    path = tmp_path / 'small.mp4'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), 12,
                             (64, 50))
    for frame in frames_of(11, 50, 64):
        writer.write(frame[..., ::-1])
    writer.release()
    return path


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


@pytest.mark.parametrize('height, width', [(50, 64), (41, 33), (30, 801)])
def test_video_has_the_written_frames(tmp_path, height, width):
    frames = frames_of(11, height, width)
    writer = VideoWriter(tmp_path / 'out.mp4', 12)
    for frame in frames:
        writer.write(frame, LINES)
    writer.close()
    reader = decord.VideoReader(str(tmp_path / 'out.mp4'), num_threads=1)
    result = reader.get_batch(range(len(reader))).asnumpy()
    assert len(result) == 11 and reader.get_avg_fps() == 12
    assert result.shape[2] == max(480, width // 2 * 2)
    middle = result[:, -10, result.shape[2] // 2, 0].astype(int)
    assert np.abs(middle - frames[:, 0, 0, 0]).max() < 12
    assert result[0, :50].max() > 150


def test_video_of_varying_rate_keeps_duration(tmp_path):
    video = write_clip(tmp_path / 'uneven.mp4', 24)
    slow_down(video, 12, 4)
    annotate_video(video, tmp_path / 'out.mp4', LINES)
    reader = decord.VideoReader(str(tmp_path / 'out.mp4'), num_threads=1)
    assert reader.get_avg_fps() == pytest.approx(12, rel=1e-3)
    assert len(reader) / 12 == pytest.approx(5, abs=0.3)


def test_video_keeps_size_of_first_frame(tmp_path):
    path = tmp_path / 'new/video.mp4'
    writer = VideoWriter(path, 12)
    for t in range(10):
        # The frame size of a source may change.
        side = 64 if t < 5 else 96
        writer.write(np.full((side, side, 3), (20 * t, 0, 0), np.uint8),
                     [f'{t} s', 'x'])
    writer.close()
    capture = cv2.VideoCapture(str(path))
    frames = []
    while (read := capture.read())[0]:
        frames.append(read[1])
    assert len(frames) == 10 and frames[0].shape == (480 + 56, 480, 3)
    red = [int(frame[300, 200, 2]) for frame in frames]
    assert red == pytest.approx([20 * t for t in range(10)], abs=8)
    VideoWriter(tmp_path / 'none.mp4', 12).close()
    assert not (tmp_path / 'none.mp4').exists()


@pytest.mark.parametrize('name', ['x.mp4', 'x.png'])
def test_suffix_selects_video_or_image(tmp_path, video, name):
    annotate_video(video, tmp_path / 'new' / name, LINES)
    capture = cv2.VideoCapture(str(tmp_path / 'new' / name))
    assert capture.read()[0]
    assert capture.read()[0] == name.endswith('.mp4')


def test_rejects_other_suffixes(tmp_path, video):
    with pytest.raises(ValueError, match='x.gif must end with one of .mp4'):
        annotate_video(video, tmp_path / 'x.gif', LINES)
