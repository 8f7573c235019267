# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import gc
import multiprocessing
from functools import cache
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from made_videos import (
    CUT,
    FPS,
    HEIGHT,
    LENGTH,
    NOT_CODED,
    WIDTH,
    images,
    make,
    numbers_of,
    require_backend,
    slow_down,
    write_at,
)

from mmvidattn.utils import video_reader
from mmvidattn.utils.decord_check import open_decord
from mmvidattn.utils.frame_times import frame_times
from mmvidattn.utils.video_reader import VideoReader

# Number of the first frame that counts, and kinds with unusual time stamps.
FIRST = {'cut': CUT, 'cut in its first group': CUT, 'no key frame first': 12}
UNTIMED = {*FIRST, 'resized', 'intra refresh', 'interlaced',
           'interlaced MPEG-2'}
KINDS = ('plain', 'varying rate', 'B-frames', 'mjpeg avi', 'open groups',
         'HEVC', 'B-frames in avi', 'transport stream',
         'hidden frames in VP8', 'two', 'without a length', 'late',
         'not coded', *UNTIMED)


@pytest.fixture(scope='module')
def video(tmp_path_factory):
    """Function that creates each kind of video once."""
    folder = tmp_path_factory.mktemp('videos')
    return cache(lambda kind: make(kind, folder))


@pytest.mark.parametrize('kind', sorted(KINDS))
def test_decodes_the_drawn_frames(video, kind):
    reader, rng = VideoReader(video(kind)), np.random.default_rng(0)
    numbers = np.arange(FIRST.get(kind, 0), LENGTH)
    if kind == 'not coded':
        # Packets that repeat a frame do not count.
        numbers = np.delete(numbers, NOT_CODED)
    last = len(numbers) - 1
    assert len(reader) == last + 1
    assert reader[last].shape == (HEIGHT, WIDTH, 3)
    for number in [*rng.permutation(last + 1)[:12], 0, last]:
        assert numbers_of(reader[number][None]) == [numbers[number]]
    for clip in (rng.integers(0, last + 1, 12), [last, 0, 0, 17],
                 np.sort(rng.integers(0, last + 1, 12))):
        assert numbers_of(reader.get_batch(clip)) == [*numbers[clip]]
    assert numbers_of(np.stack([*reader.frames()])) == [*numbers]
    assert (np.diff(reader.times) > 0).all()
    if kind in UNTIMED:
        return
    times = (numbers + FPS * (kind == 'late')) / FPS
    if kind == 'varying rate':
        times[20:] = 1 + 4 * np.arange(20) / FPS
    # An avi and a transport stream may start with a delay of B-frames.
    atol = 0.11 if kind in ('B-frames in avi', 'transport stream') else 2e-3
    np.testing.assert_allclose(frame_times(reader)[:-1], times, atol=atol)


@pytest.mark.parametrize('kind', [
    'plain', 'varying rate', 'B-frames', 'turned', 'interlaced'])
def test_frames_match_decord(video, kind):
    require_backend('decord')
    decord, reader = open_decord(str(video(kind))), VideoReader(video(kind))
    # Colors and rotation agree as well.
    np.testing.assert_allclose(
        reader.get_batch(range(LENGTH)).astype(int),
        decord.get_batch(range(LENGTH)).asnumpy(), atol=2)
    assert reader.get_avg_fps() == pytest.approx(decord.get_avg_fps())


@pytest.mark.parametrize('kind, why', [
    ('open groups', 'open groups'), ('HEVC', 'open groups'),
    ('B-frames in avi', 'avi with B-frames'), ('transport stream', 'mpegts'),
    ('one group in avi', 'avi with B-frames'), ('cut', 'edit list'),
    ('cut in its first group', 'edit list'),
    ('no key frame first', 'begin with a key frame'),
    ('hidden frames in VP8', 'packets that are not frames'),
    ('not coded', 'packets that are not frames')])
def test_decord_refuses_files_that_it_misreads(video, kind, why):
    require_backend('decord')
    path = video(kind)
    with pytest.raises(ValueError, match=f'decord.*{path.name}.*{why}'
                                         '.*video_backend=pyav'):
        open_decord(str(path))
    with pytest.raises(ValueError, match=why):
        open_decord(path.read_bytes())
    with pytest.raises(ValueError, match=f'^{__file__}: .* is not a video'):
        open_decord(__file__)


@pytest.mark.parametrize('kind', ['interlaced', 'interlaced MPEG-2'])
def test_joins_the_fields_of_interlaced_frames(video, kind):
    error = np.abs(VideoReader(video(kind)).get_batch(range(LENGTH))
                   - np.stack(images()).astype(int))
    assert error.mean() < 6
    # Both fields belong to this frame, and neither is black.
    assert error.mean((0, 2, 3)).max() < 20


def test_equal_time_stamps_are_repaired_locally(tmp_path):
    path = write_at(tmp_path / 'ties.mkv', [0, .1, .1, .2, .3, 5, 5.1])
    assert VideoReader(path).times[:-1] == pytest.approx(
        [0, .1, .15, .2, .3, 5, 5.1])


def test_a_cover_picture_is_not_a_video(tmp_path):
    path = tmp_path / 'song.aac'
    with av.open(str(path), 'w') as out:
        stream = out.add_stream('aac', rate=8000)
        silence = av.AudioFrame.from_ndarray(
            np.zeros((1, 8192), np.float32), 'fltp', 'mono')
        silence.rate = 8000
        out.mux([*stream.encode(silence), *stream.encode()])
    picture = b'\0image/jpeg\0\3\0' + cv2.imencode('.jpg', images()[0])[
        1].tobytes()
    tag = b'APIC' + len(picture).to_bytes(4, 'big') + b'\0\0' + picture
    # Seven bits in each byte.
    size = bytes(len(tag) >> shift & 127 for shift in (21, 14, 7, 0))
    path.write_bytes(b'ID3\3\0\0' + size + tag + path.read_bytes())
    with pytest.raises(ValueError, match='lacks a video stream'):
        VideoReader(path)


def test_opening_decodes_no_frame(video, monkeypatch):
    monkeypatch.setattr(video_reader, 'decode', None)
    for kind in 'plain', 'hidden frames in VP8', 'B-frames in avi':
        frame_table = video_reader.FrameTable(str(video(kind)))
        assert len(frame_table.times) == LENGTH + 1


def test_reads_bytes_with_threads_and_a_name_with_colons(video):
    data = video('plain').read_bytes()
    reader = VideoReader(data, num_threads=2)
    Path('12:30:05.mp4').write_bytes(data)
    np.testing.assert_array_equal(
        reader.get_batch([5, 3]),
        VideoReader('12:30:05.mp4').get_batch([5, 3]))
    # Transforms may change a frame.
    assert not np.shares_memory(*reader.get_frames([5, 5]))
    with pytest.raises(IndexError, match='from 0 to 39, got 3 to 40'):
        reader.get_batch([3, 40])


@pytest.mark.skipif(not Path('/proc/self').exists(), reason='no /proc')
def test_closes_without_the_garbage_collector(video):

    def count():
        return (len(list(Path('/proc/self/fd').iterdir())),
                len(list(Path('/proc/self/task').iterdir())))

    path = video('B-frames')
    VideoReader(path)[30]
    before = count()
    gc.disable()
    try:
        for _ in range(3):
            reader = VideoReader(path, num_threads=2)
            # The second read reopens the file.
            reader[30], reader[0]
            del reader
        assert np.subtract(count(), before).max() <= 0
    finally:
        gc.enable()


def test_forked_process_does_not_wait_for_decoding_threads(video):
    """Garbage of the parent process is collected in a forked process."""
    reader = VideoReader(video('plain'), num_threads=4)
    reader.get_batch([0, 3])
    gc.disable()
    try:
        reader.cycle = reader
        del reader
        process = multiprocessing.get_context('fork').Process(
            target=gc.collect)
        process.start()
        process.join(20)
        process.kill()
        process.join()
    finally:
        gc.enable()
    assert process.exitcode == 0


def test_reads_a_changed_file_anew(video, tmp_path):
    path = tmp_path / 'plain.mp4'
    path.write_bytes(video('plain').read_bytes())
    assert VideoReader(path).times[-2] == pytest.approx((LENGTH - 1) / FPS)
    slow_down(path, 20, 4)
    assert VideoReader(path).times[-2] == pytest.approx((20 + 4 * 19) / FPS)
