# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import threading
import time
from itertools import islice
from types import SimpleNamespace

import cv2
import decord
import numpy as np
import pytest
from live_fixtures import Camera
from made_videos import CUT, LENGTH, images, make, numbers_of, write_video

from mmvidattn.live import open_source
from mmvidattn.sources import LiveSource, files
from mmvidattn.sources.network import open_capture


@pytest.mark.parametrize('on_the_web', [False, True])
def test_file_has_the_frames_of_decord(clip, web, on_the_web):
    """A file on the web is downloaded once."""
    web.files['/clip.mp4'] = clip.read_bytes()
    source = open_source(
        f'{web.url}/clip.mp4?key=secret' if on_the_web else clip)
    assert (source.fps, source.live, source.num_frames) == (12, False, 84)
    frames = list(source)
    assert source.status == 'ended' and 'secret' not in source.name
    assert [f.index for f in frames] == list(range(84))
    expected = decord.VideoReader(str(clip)).get_batch(range(84)).asnumpy()
    np.testing.assert_array_equal([f.image for f in frames], expected)
    assert len(web.found) == on_the_web
    if on_the_web:
        with pytest.raises(ValueError, match='has its own rate'):
            open_source(f'{web.url}/clip.mp4', fps=10)
        web.bytes_sent = 9999
        with pytest.raises(ValueError, match='cannot open .*clip.mp4: the '
                           'connection ended after'):
            open_source(f'{web.url}/clip.mp4')


def test_folder_is_ordered_by_numbers(tmp_path):
    for i in range(12):
        cv2.imwrite(str(tmp_path / f'frame{i}.png'),
                    np.full((8, 8, 3), (0, 0, 10 * i), np.uint8))
    (tmp_path / 'notes.txt').write_text('no frame')
    source = open_source(tmp_path, fps=10)
    assert source.fps == 10
    # The images are RGB.
    assert [f.image[0, 0].tolist() for f in source] == [
        [10 * i, 0, 0] for i in range(12)]
    (tmp_path / 'frame1.png').write_bytes(b'no image')
    with pytest.raises(ValueError, match='1 of 12 frames .*1.png could not'):
        list(open_source(tmp_path))


@pytest.mark.parametrize('first', [0, 3])
def test_realtime_plays_at_the_frame_rate(tmp_path, monkeypatch, first):
    waits = [0.]
    monkeypatch.setattr(files, 'time', SimpleNamespace(
        monotonic=lambda: sum(waits)))
    for i in range(6):
        cv2.imwrite(str(tmp_path / f'{i}.png'), np.zeros((8, 8, 3)))
    source = open_source(tmp_path, realtime=True, fps=20)
    assert source.live
    source.start_at(first)
    monkeypatch.setattr(source._stopped, 'wait',
                        lambda seconds: waits.append(max(0., seconds)))
    at = np.array([frame.at for frame in source])
    np.testing.assert_allclose(at, np.arange(6 - first) / 20)


def test_damaged_video_is_an_error(broken_clip, clip):
    source, frames = open_source(broken_clip), []
    with pytest.raises(ValueError, match='broken.mp4 breaks off: .* of 84 '
                       'frames could be read'):
        # The wait gives decoding threads time to reach the damage.
        for frame in source:
            frames.append(frame.image)
            time.sleep(0.3 * (len(frames) == 1))
    assert source.status.startswith('failed: ')
    expected = decord.VideoReader(str(clip)).get_batch(range(40)).asnumpy()
    np.testing.assert_allclose(frames[:40], expected, atol=3)


@pytest.mark.parametrize('kind, where', [
    ('interlaced MPEG-2', 'web'), ('interlaced MPEG-2', 'pipe'),
    ('cut', 'file'), ('two', 'pipe'), ('resized', 'pipe'),
    ('without a length', 'web'), ('transport stream', 'file')])
def test_difficult_videos_give_all_frames(web, tmp_path, kind, where):
    path = make(kind, tmp_path)
    source = path
    if where == 'web':
        web.files['/video'] = path.read_bytes()
        source = f'{web.url}/video'
    elif where == 'pipe':
        source = tmp_path / 'pipe'
        os.mkfifo(source)
        # The thread ends when the reader closes the pipe.
        threading.Thread(target=source.write_bytes, daemon=True,
                         args=[path.read_bytes()]).start()
    first = CUT if kind == 'cut' else 0
    opened = open_source(source)
    assert opened.live == (where == 'pipe')
    # Do not read on from a pipe: reopening it waits for a writer.
    got = np.stack([frame.image for frame in islice(
        opened, LENGTH if where == 'pipe' else None)])
    assert numbers_of(got) == list(range(first, LENGTH))
    expected = np.stack(images())[first:]
    assert np.abs(got - expected.astype(int)).mean((0, 2, 3)).max() < 20


def test_lost_camera_is_reopened(camera):
    source = open_source(camera.url)
    assert source.live
    # The name has no password.
    assert source.name == f'http://127.0.0.1:{camera.port}/video.mjpg'
    frames, statuses = iter(source), []

    def switch_on():
        statuses.append(source.status)
        camera.switch_on()

    first, *_ = islice(frames, 10)
    camera.switch_off()
    threading.Timer(0.7, switch_on).start()
    lost = time.monotonic()
    *_, last = islice((x for x in frames if x.at > lost + 0.6), 10)
    assert [*statuses, source.status] == ['lost, reconnecting', 'running']
    # The indices follow the clock.
    assert last.index - first.index == pytest.approx(
        (last.at - first.at) * source.fps, abs=1)
    source.stop()
    assert list(frames) == []
    assert source.status == 'ended'


def test_silent_camera_counts_as_lost():
    """Reading and reopening take no longer than the timeout."""
    camera = Camera(num=12)
    try:
        source = LiveSource(camera.url, timeout=0.3, patience=0.5)
        frames = iter(source)
        next(frames)
        with pytest.raises(ValueError, match='127.0.0.1.* was lost and could '
                           'not be reopened in 0.5 s'):
            list(frames)
        assert 'secret' not in source.status
        with pytest.raises(ValueError, match='cannot open http://127.0.0.1'):
            LiveSource(camera.url, timeout=0.3)
    finally:
        camera.switch_off()


def test_environment_variable_sets_options_of_ffmpeg(web, clip, monkeypatch):
    web.files['/clip.mp4'] = clip.read_bytes()
    name = 'OPENCV_FFMPEG_CAPTURE_OPTIONS'
    monkeypatch.setenv(name, 'rtsp_transport;udp|user_agent;door')
    stream = open_capture(f'{web.url}/clip.mp4', 5)
    assert stream.grab() and web.headers('User-Agent') == ['door']
    stream.release()
    monkeypatch.setenv(name, 'rtsp_transport=udp')
    with pytest.raises(ValueError, match=f'{name}.*rtsp_transport=udp'):
        open_capture(f'{web.url}/clip.mp4', 5)


def test_stream_starts_with_the_first_key_frame(web, tmp_path):
    # The MPEG-4 decoder gives gray frames before it.
    path = write_video(tmp_path / 'late.mp4', 'mpeg4', g='12', lost=range(5))
    web.files['/late.mp4'] = path.read_bytes()
    stream, results = open_capture(f'{web.url}/late.mp4', 5), []
    while stream.grab():
        results.append(stream.retrieve())
    stream.release()
    assert numbers_of(np.stack(results)) == [*range(12, LENGTH)]
