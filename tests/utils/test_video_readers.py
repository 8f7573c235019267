# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import gc
import multiprocessing
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
# decord 0.6 returns wrong frames of these after a seek; torchcodec 0.13 finds
# no frame in the first.
HARD = [('pyav', 'open groups'), ('opencv', 'open groups'), ('pyav', 'HEVC'),
        ('opencv', 'HEVC'), ('torchcodec', 'HEVC')]
WITHOUT_TIMES = 'B-frames in avi', 'transport stream'
RNG = np.random.default_rng(0)
# Forward, backward, and repeated frames.
CLIPS = [np.arange(LENGTH), RNG.integers(0, LENGTH, 12),
         np.sort(RNG.integers(0, LENGTH, 12)), [LENGTH - 1, 0, 0, 17]]


@pytest.fixture(scope='module')
def video(tmp_path_factory):
    """Function that creates each kind of video once."""
    folder, made = tmp_path_factory.mktemp('videos'), {}

    def of_kind(kind):
        if kind not in made:
            made[kind] = make(kind, folder)
        return made[kind]

    return of_kind


@pytest.mark.parametrize('backend, kind', [
    *((backend, kind) for backend in BACKENDS for kind in KINDS), *HARD])
def test_decodes_the_drawn_frames(video, backend, kind):
    require_backend(backend)
    reader = open_video(video(kind), backend)
    assert len(reader) == LENGTH
    for clip in CLIPS:
        assert numbers_of(reader.get_batch(clip)) == list(clip)
    times = np.arange(LENGTH + 1) / FPS
    if kind == 'varying rate':
        times = np.append(times[:20], 1 + 4 * np.arange(21) / FPS)
    # Some files give the last frame a shorter duration.
    np.testing.assert_allclose(frame_times(reader)[:-1], times[:-1],
                               atol=2e-3)


@pytest.mark.parametrize('backend, kind', [
    *((backend, kind) for backend in ('torchcodec', 'pyav', 'opencv')
      for kind in (*KINDS[:3], 'turned')),
    ('torchcodec', 'interlaced'), ('pyav', 'interlaced')])
def test_frames_match_decord(video, backend, kind):
    for name in 'decord', backend:
        require_backend(name)
    expected, got = (open_video(video(kind), name).get_batch(range(LENGTH))
                     for name in ('decord', backend))
    # Colors and rotation agree as well.
    np.testing.assert_allclose(got.astype(int), expected, atol=2)


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
def test_refuses_files_that_it_misreads(video, backend, kind, why):
    require_backend(backend)
    path = video(kind)
    with pytest.raises(ValueError, match=f'(?i){backend}.*{path.name}.*{why}'
                                         '.*video_backend=pyav'):
        open_video(path, backend)
    with pytest.raises(ValueError, match=why):
        open_video(path.read_bytes(), backend)


@pytest.mark.parametrize('kind', ['interlaced', 'interlaced MPEG-2'])
@pytest.mark.parametrize('backend', ['decord', 'torchcodec', 'pyav'])
def test_decodes_the_drawn_interlaced_frames(video, backend, kind):
    require_backend(backend)
    reader = open_video(video(kind), backend)
    for clip in CLIPS:
        result = reader.get_batch(clip)
        assert numbers_of(result) == list(clip)
        error = np.abs(result - np.stack(images())[clip].astype(int))
        assert error.mean() < 6
    # Both fields belong to this frame, and neither is black.
    assert error.mean((0, 2, 3)).max() < 20


@pytest.mark.parametrize('kind', ['cut', 'cut in its first group'])
@pytest.mark.parametrize('backend', ['pyav', 'opencv'])
def test_hidden_frames_do_not_count(video, backend, kind):
    reader = open_video(video(kind), backend)
    expected = list(range(CUT, LENGTH))
    assert len(reader) == len(expected)
    assert numbers_of(np.stack(list(reader.frames()))) == expected
    for number in [*RNG.permutation(len(expected)), 0, len(expected) - 1]:
        assert numbers_of(reader[number][None]) == [CUT + number]


def test_frames_before_the_first_key_frame_do_not_count(video):
    reader = open_video(video('no key frame first'), 'pyav')
    expected = list(range(12, LENGTH))
    assert numbers_of(np.stack(list(reader.frames()))) == expected
    assert numbers_of(reader.get_batch([7, 0])) == [19, 12]


def test_dependent_key_frames_are_decoded_from_the_start(video):
    reader = open_video(video('intra refresh'), 'pyav')
    for number in RNG.permutation(LENGTH):
        assert numbers_of(reader[number][None]) == [number]


@pytest.mark.parametrize('backend', BACKENDS)
def test_frames_can_be_iterated_repeatedly(video, backend):
    require_backend(backend)
    reader = open_video(video('plain'), backend)
    for _ in range(2):
        assert numbers_of(np.stack(list(reader.frames()))) == list(
            range(LENGTH))
        reader[3]


def test_checks_a_replaced_file_again(video, tmp_path):
    require_backend('decord')
    path = tmp_path / 'video'
    path.write_bytes(video('plain').read_bytes())
    open_video(path, 'decord')
    path.write_bytes(video('cut').read_bytes())
    with pytest.raises(ValueError, match='edit list'):
        open_video(path, 'decord')


@pytest.mark.parametrize('kind', WITHOUT_TIMES)
@pytest.mark.parametrize('backend', ['pyav', 'opencv'])
def test_files_without_time_stamps_are_right(video, backend, kind):
    require_backend(backend)
    reader = open_video(video(kind), backend)
    for clip in CLIPS:
        assert numbers_of(reader.get_batch(clip)) == list(clip)


@pytest.mark.parametrize('backend', BACKENDS)
def test_reads_bytes_with_threads(video, backend):
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
            # The second read reopens the file.
            reader[30], reader[0]
            del reader
        assert np.subtract(count(), before).max() <= 0
    finally:
        gc.enable()


def test_forked_process_does_not_wait_for_decoding_threads(video):
    """Garbage of the parent process is collected in a forked process."""
    reader = open_video(video(KINDS[0]), dict(type='pyav', num_threads=4))
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


@pytest.mark.parametrize('backend', ['torchcodec', 'opencv'])
def test_approximate_seeks_are_right_at_constant_rate(video, backend):
    require_backend(backend)
    reader = open_video(video('plain'),
                        dict(type=backend, seek_mode='approximate'))
    for clip in CLIPS:
        assert numbers_of(reader.get_batch(clip)) == list(clip)


@pytest.mark.parametrize('backend', BACKENDS)
def test_rejects_file_that_is_not_a_video(backend, tmp_path):
    require_backend(backend)
    path = tmp_path / 'no.mp4'
    path.write_bytes(b'no video' * 99)
    with pytest.raises(Exception) as caught:
        open_video(path, backend)
    # The guard of datasets does not catch these.
    assert not isinstance(caught.value, (ImportError, KeyError, TypeError))


@pytest.mark.parametrize('backend, message', [
    ('ffms', "one of decord, torchcodec, pyav, opencv, got 'ffms'"),
    (dict(num_threads=1), 'got None'),
    (dict(type='opencv', device='cuda'), 'opencv lacks the option device; it '
                                         'has num_threads, seek_mode'),
    (dict(type='opencv', seek_mode='fast'), "'approximate'.*got 'fast'")])
def test_rejects_unknown_backends_and_options(video, backend, message):
    with pytest.raises(ValueError, match=message):
        open_video(video('plain'), backend)


def test_variable_selects_default_backend(video, monkeypatch):
    monkeypatch.setenv('MMVIDATTN_VIDEO_BACKEND', 'opencv')
    assert type(open_video(video('plain'))).__name__ == 'OpenCVReader'
    monkeypatch.setenv('MMVIDATTN_VIDEO_BACKEND', 'vlc')
    with pytest.raises(ValueError, match="got 'vlc'"):
        open_video(video('plain'))


def test_names_missing_backend_and_another_one(monkeypatch):
    monkeypatch.setitem(video_readers.BACKENDS, 'pyav',
                        ('no_such_module', 'pip install av', 'PyAVReader'))
    with pytest.raises(ImportError, match='pip install av.*video_backend=tor'):
        open_video('a.mp4', 'pyav')


@pytest.mark.parametrize('name', ['test.mp4', *(
    pytest.param(name, marks=pytest.mark.slow)
    for name in ('arm_wrestling.mp4', 'structuralize.mp4'))])
def test_real_clips_are_bit_equal(shared_dir, name):
    for backend in 'decord', 'torchcodec', 'pyav', 'opencv':
        require_backend(backend)
    path = shared_dir / 'videos' / name
    decord = open_video(path, 'decord')
    expected = decord.get_batch(range(len(decord)))
    for backend in 'torchcodec', 'pyav', 'opencv':
        reader = open_video(path, backend)
        assert len(reader) == len(expected)
        numbers = np.arange(len(expected))
        for clip in numbers, RNG.permutation(numbers)[:12]:
            np.testing.assert_array_equal(reader.get_batch(clip),
                                          expected[clip])
        assert reader.get_avg_fps() == pytest.approx(decord.get_avg_fps())


@pytest.mark.parametrize('backend', ['decord', 'torchcodec'])
def test_refuses_real_avi(shared_dir, backend):
    require_backend(backend)
    with pytest.raises(ValueError, match='an avi with B-frames'):
        open_video(shared_dir / 'videos/test.avi', backend)
