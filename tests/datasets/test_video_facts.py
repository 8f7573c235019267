# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import av
import pytest
from made_videos import LENGTH, images, make, write_at

from mmvidattn.datasets.video_facts import list_videos, read_facts
from mmvidattn.utils.video_reader import VideoReader

# Codec of each container.
CODECS = {
    '3gp': 'mpeg4', 'asf': 'mpeg4', 'avi': 'mpeg4', 'flv': 'flv', 'gif': 'gif',
    'h264': 'libx264', 'm2ts': 'mpeg2video', 'm4v': 'mpeg4', 'mkv': 'mpeg4',
    'mov': 'mpeg4', 'mp4': 'mpeg4', 'mpeg': 'mpeg2video', 'mpg': 'mpeg2video',
    'mts': 'mpeg2video', 'ogv': 'libtheora', 'ts': 'mpeg2video',
    'vob': 'mpeg2video', 'webm': 'libvpx', 'wmv': 'wmv2'}


@pytest.mark.parametrize('suffix', CODECS)
def test_finds_and_reads_videos_of_all_containers(tmp_path, suffix):
    path, codec = tmp_path / f'a.{suffix.upper()}', CODECS[suffix]
    path.touch()
    assert list_videos(tmp_path) == [str(path)]
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg lacks {codec} here')
    with av.open(str(path), 'w') as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height = 176, 144
        stream.pix_fmt = 'rgb8' if codec == 'gif' else 'yuv420p'
        if codec == 'libvpx':
            stream.options = dict(deadline='realtime')
        for image in images():
            container.mux(stream.encode(av.VideoFrame.from_ndarray(
                image, format='rgb24').reformat(176, 144)))
        container.mux(stream.encode())
    assert len(VideoReader(path)) == LENGTH
    assert read_facts(path).duration == pytest.approx(LENGTH / 25, abs=.1)


@pytest.mark.parametrize('suffix, codec', [
    ('avi', 'mjpeg'), ('mkv', 'mjpeg'), ('mp4', 'mpeg4'), ('webm', 'libvpx')])
def test_duration_is_the_last_time_stamp(tmp_path, suffix, codec):
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg lacks {codec} here')
    path = write_at(tmp_path / f'a.{suffix}', [0, .1, .2, .3, 7, 7.1], codec)
    assert read_facts(path).duration == pytest.approx(7.2, abs=.02)


def test_duration_begins_with_the_sound(tmp_path):
    assert read_facts(make('late', tmp_path)).duration == pytest.approx(
        1 + LENGTH / 20, abs=.01)
