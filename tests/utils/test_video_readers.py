# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import gc
from pathlib import Path

import numpy as np
import pytest
from made_videos import (
    CUT,
    FPS,
    LENGTH,
    images,
    make,
    numbers_of,
    require_backend,
)

from mmvidattn.utils import video_readers
from mmvidattn.utils.frame_times import frame_times
from mmvidattn.utils.video_readers import BACKENDS, open_video

KINDS = 'plain', 'varying rate', 'B-frames', 'mjpeg avi'
# Of these decord 0.6 takes wrong frames after it has sought; torchcodec 0.13
# finds none in the first.
HARD = [('pyav', 'open groups'), ('opencv', 'open groups'), ('pyav', 'HEVC'),
        ('opencv', 'HEVC'), ('torchcodec', 'HEVC')]
WITHOUT_TIMES = 'B-frames in avi', 'transport stream'
RNG = np.random.default_rng(0)
# Back and forth, and twice the same.
CLIPS = [np.arange(LENGTH), RNG.integers(0, LENGTH, 12),
         np.sort(RNG.integers(0, LENGTH, 12)), [LENGTH - 1, 0, 0, 17]]


@pytest.fixture(scope='module')
def video(tmp_path_factory):
    """Makes each kind of video once."""
    folder, made = tmp_path_factory.mktemp('videos'), {}

    def of_kind(kind):
        if kind not in made:
            made[kind] = make(kind, folder)
        return made[kind]

    return of_kind


@pytest.mark.parametrize('backend, kind', [
    *((backend, kind) for backend in BACKENDS for kind in KINDS), *HARD])
def test_frames_are_those_that_were_drawn(video, backend, kind):
    require_backend(backend)
    reader = open_video(video(kind), backend)
    assert len(reader) == LENGTH
    for clip in CLIPS:
        assert numbers_of(reader.get_batch(clip)) == list(clip)
    times = np.arange(LENGTH + 1) / FPS
    if kind == 'varying rate':
        times = np.append(times[:20], 1 + 4 * np.arange(21) / FPS)
    # The last frame may be said to be short.
    np.testing.assert_allclose(frame_times(reader)[:-1], times[:-1],
                               atol=2e-3)


@pytest.mark.parametrize('backend, kind', [
    *((backend, kind) for backend in ('torchcodec', 'pyav', 'opencv')
      for kind in (*KINDS[:3], 'turned')),
    ('torchcodec', 'interlaced'), ('pyav', 'interlaced')])
def test_frames_are_decords(video, backend, kind):
    for name in 'decord', backend:
        require_backend(name)
    wanted, found = (open_video(video(kind), name).get_batch(range(LENGTH))
                     for name in ('decord', backend))
    # Colors are converted alike, and pictures turned alike.
    np.testing.assert_allclose(found.astype(int), wanted, atol=2)


@pytest.mark.parametrize('backend, kind, why', [
    *(('decord', kind, why) for kind, why in (
        ('open groups', 'open groups'), ('HEVC', 'open groups'),
        ('B-frames in avi', 'open groups'), ('transport stream', 'mpegts'),
        ('one group in avi', 'avi with B-frames'), ('cut', 'edit list'),
        ('cut in its first group', 'edit list'),
        ('no key frame first', 'begin with a key frame'))),
    *(('torchcodec', kind, why) for kind, why in (
        ('B-frames in avi', 'avi with B-frames'),
        ('transport stream', 'transport stream'), ('cut', 'edit list'),
        ('open groups', 'open groups'), ('intra refresh', 'open groups'),
        ('no key frame first', 'begin with a key frame'))),
    *(('opencv', kind, why) for kind, why in (
        ('interlaced', 'is interlaced'), ('interlaced MPEG-2', 'interlaced'),
        ('no key frame first', 'begin with a key frame')))])
def test_refuses_what_it_would_misread(video, backend, kind, why):
    require_backend(backend)
    path = video(kind)
    with pytest.raises(ValueError, match=f'(?i){backend}.*{path.name}.*{why}'
                                         '.*video_backend=pyav'):
        open_video(path, backend)
    with pytest.raises(ValueError, match=why):
        open_video(path.read_bytes(), backend)


@pytest.mark.parametrize('kind', ['interlaced', 'interlaced MPEG-2'])
@pytest.mark.parametrize('backend', ['decord', 'torchcodec', 'pyav'])
def test_interlaced_frames_are_those_that_were_drawn(video, backend, kind):
    require_backend(backend)
    reader = open_video(video(kind), backend)
    for clip in CLIPS:
        found = reader.get_batch(clip)
        assert numbers_of(found) == list(clip)
        error = np.abs(found - np.stack(images())[clip].astype(int))
        assert error.mean() < 6
    # Both fields: neither black nor left from another frame.
    assert error.mean((0, 2, 3)).max() < 20


@pytest.mark.parametrize('kind', ['cut', 'cut in its first group'])
@pytest.mark.parametrize('backend', ['pyav', 'opencv'])
def test_cut_frames_do_not_count(video, backend, kind):
    reader = open_video(video(kind), backend)
    wanted = list(range(CUT, LENGTH))
    assert len(reader) == len(wanted)
    assert numbers_of(np.stack(list(reader.frames()))) == wanted
    for number in [*RNG.permutation(len(wanted)), 0, len(wanted) - 1]:
        assert numbers_of(reader[number][None]) == [CUT + number]


def test_frames_before_the_first_key_frame_do_not_count(video):
    reader = open_video(video('no key frame first'), 'pyav')
    wanted = list(range(12, LENGTH))
    assert numbers_of(np.stack(list(reader.frames()))) == wanted
    assert numbers_of(reader.get_batch([7, 0])) == [19, 12]


def test_key_frames_that_need_earlier_ones_are_decoded_from_the_start(video):
    reader = open_video(video('intra refresh'), 'pyav')
    for number in RNG.permutation(LENGTH):
        assert numbers_of(reader[number][None]) == [number]


@pytest.mark.parametrize('backend', BACKENDS)
def test_all_frames_can_be_iterated_more_than_once(video, backend):
    require_backend(backend)
    reader = open_video(video('plain'), backend)
    for _ in range(2):
        assert numbers_of(np.stack(list(reader.frames()))) == list(
            range(LENGTH))
        reader[3]


def test_a_file_that_was_replaced_is_checked_again(video, tmp_path):
    require_backend('decord')
    path = tmp_path / 'video'
    path.write_bytes(video('plain').read_bytes())
    open_video(path, 'decord')
    path.write_bytes(video('cut').read_bytes())
    with pytest.raises(ValueError, match='edit list'):
        open_video(path, 'decord')


@pytest.mark.parametrize('kind', WITHOUT_TIMES)
@pytest.mark.parametrize('backend', ['pyav', 'opencv'])
def test_without_time_stamps_others_are_right(video, backend, kind):
    require_backend(backend)
    reader = open_video(video(kind), backend)
    for clip in CLIPS:
        assert numbers_of(reader.get_batch(clip)) == list(clip)


@pytest.mark.parametrize('backend', BACKENDS)
def test_bytes_threads_and_one_frame(video, backend):
    require_backend(backend)
    path = video('plain')
    reader = open_video(path.read_bytes(), dict(type=backend, num_threads=2))
    np.testing.assert_array_equal(
        reader.get_batch([5, 3]), open_video(path, backend).get_batch([5, 3]))
    assert numbers_of(reader[39][None]) == [39]
    with pytest.raises(IndexError, match='from 0 to 39, got 3 to 40'):
        reader.get_batch([3, 40])


@pytest.mark.skipif(not Path('/proc/self').exists(), reason='no /proc')
@pytest.mark.parametrize('backend', BACKENDS)
def test_closes_without_the_garbage_collector(video, backend):
    require_backend(backend)

    def count():
        return (len(list(Path('/proc/self/fd').iterdir())),
                len(list(Path('/proc/self/task').iterdir())))

    path = video('B-frames')
    open_video(path, backend)[30]
    before = count()
    gc.disable()
    try:
        for _ in range(3):
            reader = open_video(path, dict(type=backend, num_threads=2))
            # Opens it again.
            reader[30], reader[0]
            del reader
        assert np.subtract(count(), before).max() <= 0
    finally:
        gc.enable()


@pytest.mark.parametrize('backend', ['torchcodec', 'opencv'])
def test_seeking_by_rate_is_right_at_a_constant_one(video, backend):
    require_backend(backend)
    reader = open_video(video('plain'),
                        dict(type=backend, seek_mode='approximate'))
    for clip in CLIPS:
        assert numbers_of(reader.get_batch(clip)) == list(clip)


@pytest.mark.parametrize('backend', BACKENDS)
def test_file_that_is_no_video(backend, tmp_path):
    require_backend(backend)
    path = tmp_path / 'no.mp4'
    path.write_bytes(b'no video' * 99)
    with pytest.raises(Exception) as caught:
        open_video(path, backend)
    # The guard catches these.
    assert not isinstance(caught.value, (ImportError, KeyError, TypeError))


@pytest.mark.parametrize('backend, said', [
    ('ffms', "one of decord, torchcodec, pyav, opencv, got 'ffms'"),
    (dict(num_threads=1), 'got None'),
    (dict(type='opencv', device='cuda'), 'opencv lacks the option device; it '
                                         'has num_threads, seek_mode'),
    (dict(type='opencv', seek_mode='fast'), "'approximate'.*got 'fast'")])
def test_rejects_what_there_is_not(video, backend, said):
    with pytest.raises(ValueError, match=said):
        open_video(video('plain'), backend)


def test_a_variable_chooses_where_nothing_else_does(video, monkeypatch):
    monkeypatch.setenv('MMVIDATTN_VIDEO_BACKEND', 'opencv')
    assert type(open_video(video('plain'))).__name__ == 'OpenCVReader'
    monkeypatch.setenv('MMVIDATTN_VIDEO_BACKEND', 'vlc')
    with pytest.raises(ValueError, match="got 'vlc'"):
        open_video(video('plain'))


def test_missing_backend_is_named_with_others(monkeypatch):
    monkeypatch.setitem(video_readers.BACKENDS, 'pyav',
                        ('no_such_module', 'pip install av', 'PyAVReader'))
    with pytest.raises(ImportError, match='pip install av.*video_backend=tor'):
        open_video('a.mp4', 'pyav')


@pytest.mark.parametrize('name', [
    'arm_wrestling.mp4', 'structuralize.mp4', 'test.mp4'])
def test_real_clips_are_the_same_to_the_bit(shared_dir, name):
    for backend in 'decord', 'torchcodec', 'pyav', 'opencv':
        require_backend(backend)
    path = shared_dir / 'videos' / name
    decord = open_video(path, 'decord')
    wanted = decord.get_batch(range(len(decord)))
    for backend in 'torchcodec', 'pyav', 'opencv':
        reader = open_video(path, backend)
        assert len(reader) == len(wanted)
        for clip in np.arange(len(wanted)), RNG.permutation(len(wanted))[:12]:
            np.testing.assert_array_equal(reader.get_batch(clip),
                                          wanted[clip])
        assert reader.get_avg_fps() == pytest.approx(decord.get_avg_fps())


@pytest.mark.parametrize('backend', ['decord', 'torchcodec'])
def test_real_avi_is_refused(shared_dir, backend):
    require_backend(backend)
    with pytest.raises(ValueError, match='an avi with B-frames'):
        open_video(shared_dir / 'videos/test.avi', backend)
