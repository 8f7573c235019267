# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from made_videos import make, require_backend
from mmengine.dataset import Compose
from mmengine.fileio import FileClient, HardDiskBackend

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
