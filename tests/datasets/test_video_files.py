# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import faulthandler
import os
import re
import signal
import time

import av
import numpy as np
import pytest
from made_videos import (
    LENGTH,
    images,
    make,
    remux,
    require_backend,
    write_at,
    write_video,
)
from mmengine.dataset import Compose
from mmengine.fileio import FileClient, HardDiskBackend

from mmvidattn.datasets import check_files as check
from mmvidattn.datasets.video_facts import list_videos, read_facts
from mmvidattn.utils.remote_files import RemoteError
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
        for image in images()[:16]:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(
                image, format='rgb24').reformat(176, 144)))
        container.mux(stream.encode())
    assert len(VideoReader(path)) == 16
    assert read_facts(path).duration == pytest.approx(16 / 25, abs=.1)


@pytest.mark.parametrize('suffix, codec', [
    ('avi', 'mjpeg'), ('mkv', 'mjpeg'), ('mp4', 'mpeg4'), ('webm', 'libvpx')])
def test_duration_is_the_last_time_stamp(tmp_path, suffix, codec):
    if codec not in av.codecs_available:
        pytest.skip(f'ffmpeg lacks {codec} here')
    path = write_at(tmp_path / f'a.{suffix}', [0, .1, .2, .3, 7, 7.1], codec)
    assert read_facts(path).duration == pytest.approx(7.2, abs=.02)
    if suffix == 'mp4':
        # The video begins one second after the sound.
        late = make('late', tmp_path)
        assert read_facts(late).duration == pytest.approx(3, abs=.01)


# Checks

def behave(path, every_frame):
    """Let a file behave as its name says."""
    print('noise')
    if 'crash' in path:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
    if 'block' in path:
        time.sleep(60)
    if 'away' in path:
        raise RemoteError(f'cannot copy {path}')
    if 'bad' in path:
        raise ValueError('no frames')


def test_names_files_that_crash_or_block_their_process(monkeypatch):
    monkeypatch.setattr(check, 'check_video', behave)
    names = [*'01', 'crash', *'34', 'bad', 'block', *'789', 'crash at the end']
    ticks = []
    found = dict(check.check_files(names, 3, .5, tick=lambda: ticks.append(1)))
    crashed = 'it crashed the process that read it, or took more than 0.5 s'
    assert found == {
        'bad': 'ValueError: no frames', 'crash': crashed, 'block': crashed,
        'crash at the end': crashed}
    assert len(ticks) == len(names)


def test_a_lost_server_ends_the_check(monkeypatch):
    monkeypatch.setattr(check, 'check_video', behave)
    with pytest.raises(RemoteError, match='cannot copy away'):
        list(check.check_files(['a', 'away', 'b'], 2, 9.))


def test_decodes_every_frame_or_only_the_last(tmp_path):
    path = write_video(tmp_path / 'a.mkv', 'mjpeg', pix_fmt='yuvj420p')
    data = bytearray(path.read_bytes())
    first, after = [i for i in range(len(data))
                    if data[i:i + 3] == b'\xff\xd8\xff'][LENGTH // 2:][:2]
    data[first:after - 40] = bytes(after - 40 - first)
    path.write_bytes(data)
    check.check_video(str(path))
    with pytest.raises(Exception):
        check.check_video(str(path), every_frame=True)


def shorten(path):
    path.write_bytes(path.read_bytes()[:path.stat().st_size * 2 // 5])
    with pytest.raises(Exception) as raised:
        check.check_video(str(path), every_frame=True)
    return str(raised.value)


@pytest.mark.parametrize('suffix', ['avi', 'mkv', 'mp4', 'webm'])
def test_names_a_file_that_was_cut_off(tmp_path, suffix):
    codec = 'libvpx' if suffix == 'webm' else 'mjpeg'
    path = write_video(tmp_path / f'a.{suffix}', codec, pix_fmt=(
        'yuvj420p' if codec == 'mjpeg' else 'yuv420p'))
    if suffix == 'mp4':
        # Move the index to the start, as for the web.
        path = remux(tmp_path / 'b.mp4', path, lambda packet: [packet],
                     options=dict(movflags='faststart'))
    check.check_video(str(path), every_frame=True)
    assert 'the file is cut off after' in shorten(path)


@pytest.mark.parametrize('suffix, codec', [
    ('mkv', 'mjpeg'), ('mp4', 'mpeg4')])
def test_a_video_that_begins_late_is_not_cut_off(tmp_path, suffix, codec):
    path = write_at(tmp_path / f'a.{suffix}', 5 + np.arange(40) / 10, codec)
    check.check_video(str(path), every_frame=True)
    if suffix == 'mkv':
        assert re.search(r'after 1\.\d+ s of 4\.\d+ s', shorten(path))


# Steps of pipelines

INIT, DECODE = dict(type='VideoReaderInit'), dict(type='VideoReaderDecode')
SAMPLE = dict(type='SampleFrames', clip_len=4, frame_interval=2, num_clips=2)


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp('videos')
    return {kind: make(kind, folder) for kind in ('plain', 'varying rate')}


def load(path, init, decode, **more):
    np.random.seed(0)
    return Compose([init, SAMPLE, decode])(dict(
        filename=str(path), start_index=0, modality='RGB', **more))


def check_same_as_decord(path, init=INIT, decord='DecordInit', **more):
    require_backend('decord')
    found = load(path, init, DECODE, **more)
    wanted = load(path, dict(type=decord), dict(type='DecordDecode'), **more)
    assert found.keys() == wanted.keys()
    # Readers disagree on the duration of the last frame at varying rates.
    assert found['avg_fps'] == pytest.approx(wanted['avg_fps'], rel=0.04)
    for key in wanted.keys() - {'imgs', 'avg_fps'}:
        assert np.array_equal(found[key], wanted[key]), key
    np.testing.assert_allclose(
        np.array(found['imgs'], int), np.array(wanted['imgs']), atol=2)
    assert type(found['imgs']) is list


def test_keys_and_frames_match_decords_steps(paths):
    check_same_as_decord(paths['plain'], gt_bboxes=np.array(
        [[0, 0.25, 0.5, 1]]), proposals=None)
    # Read from another storage backend, by a name without a suffix.
    FileClient.register_backend('shelf', HardDiskBackend, force=True)
    check_same_as_decord(paths['plain'].with_suffix(''),
                         dict(INIT, io_backend='shelf'))


@pytest.mark.parametrize('segment', [
    (0.5, 1.4, 's'), (0, 0.3, 's'), (1.2, 99, 's'), (7, 21, 'frames')])
@pytest.mark.parametrize('kind', ['plain', 'varying rate'])
def test_segments_match_decord(kind, segment, paths):
    check_same_as_decord(paths[kind], decord='DecordSegmentInit',
                         segment=segment)


def test_repeated_frames_are_different_arrays(paths):
    images = Compose([INIT, DECODE])(dict(
        filename=str(paths['plain']), frame_inds=np.array([3, 5, 3])))['imgs']
    assert np.array_equal(images[0], images[2])
    images[0][:] = 0
    assert images[2].any() and images[1].flags.writeable


@pytest.mark.parametrize('options, segment, error', [
    ({}, (9, 10, 's'), 'begins after the video'),
    ({}, (0.51, 0.54, 's'), 'contains no frame'),
    (dict(backend='opencv'), None, 'has no option backend .*remove it')])
def test_rejects_empty_segments_and_removed_options(paths, options, segment,
                                                    error):
    with pytest.raises(ValueError, match=error):
        load(paths['plain'], dict(INIT, **options), DECODE, segment=segment)
